"""Lines of the library's log go to the logger "gpumem", at the call after the one that wrote them."""

_loggers = {}


def number_of(logger):
    """How a line names its logger, which outlives the resource that writes: the last lines come after it."""
    number = max(_loggers, default=0) + 1
    _loggers[number] = logger
    return number


def log(level, text, number):
    """Called by the extension with a gpumem_log_level. The module logging is imported with the first line."""
    import logging
    levels = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG}
    logger = _loggers.get(number) or logging.getLogger("gpumem")
    logger.log(levels.get(level, logging.INFO), "%s", text)
