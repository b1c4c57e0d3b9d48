"""How the pages of the site look; scripts/build_site.py gathers them and starts Sphinx."""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.writers.html5 import HTML5Translator

project = html_title = "Was this model trained on this benchmark?"
extensions = ["myst_nb"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"
# Answers and prompts are shown as they are.
smartquotes = False

html_use_index = False
html_theme = "sphinx_book_theme"
html_theme_options = {
    "footer_content_items": [],
    "home_page_in_toc": True,
    "navbar_persistent": [],
    "search_bar_text": "Search",
    "show_toc_level": 2,
    "use_fullscreen_button": False,
}
html_favicon = "favicon.svg"
html_context = {"default_mode": "auto"}
# The checks of the exercises, which pages run in the browser.
exercises = [f"../src/contamination/teaching/exercises.{kind}" for kind in ("py", "json")]
html_static_path = ["site.css", "exercises.js", *exercises]
html_css_files = ["site.css"]
html_js_files = [("exercises.js", {"defer": "defer"})]
# A summary is fetched, which a browser refuses for pages opened from a disk.
html_show_search_summary = False
html_math_renderer = "mathml"


def link_file_names(app: Sphinx, doctree: nodes.document) -> None:
    """Make a file's name in code font a link to its page or to the file."""
    env, page = app.env, app.env.docname
    for literal in list(doctree.findall(nodes.literal)):
        if isinstance(literal.parent, nodes.reference) or not literal.astext():
            continue
        name = literal.astext()
        places = [name, f"tables/{name}", f"figures/{name}"]
        path = next((place for place in places if (env.srcdir / place).is_file()), None)
        if path is None:
            continue
        target = env.path2doc(env.srcdir / path)
        if target in env.found_docs:
            uri = app.builder.get_relative_uri(page, target)
        else:
            uri = "../" * page.count("/") + path
        literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=uri))


def give_figures_a_paragraph(app: Sphinx, doctree: nodes.document) -> None:
    """A notebook's figure stands in a paragraph, as a document's does, and can scroll in it."""
    for image in list(doctree.findall(nodes.image)):
        if not isinstance(image.parent, nodes.paragraph):
            image.replace_self(nodes.paragraph("", "", image.deepcopy()))


def visit_math(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Formulas as MathML, which browsers set without a script."""
    is_block = isinstance(node, nodes.math_block)
    try:
        formula = tex2mathml(node.astext(), as_block=is_block)
    except MathError as error:
        raise SphinxError(f"{translator.builder.current_docname}: {error}") from None
    translator.body.append(f'<div class="math">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", link_file_names)
    app.connect("doctree-read", give_figures_a_paragraph)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
