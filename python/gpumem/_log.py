"""Lines of the library's log go to the logger "gpumem", at the call after the one that wrote them."""


def log(level, text):
    """Called by the extension with a gpumem_log_level. The module logging is imported with the first line."""
    import logging
    levels = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG}
    logging.getLogger("gpumem").log(levels.get(level, logging.INFO), "%s", text)
