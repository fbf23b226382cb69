# cmake -D OUTPUT=<file.c> -D PREFIX=<p> -D FILES=<a,b,...> -P embed_text.cmake
# Writes each file as a C array that ends with 0; that of dir/page.css is called <p>page_css.
string(REPLACE "," ";" files "${FILES}")
set(text "/* Made by cmake/embed_text.cmake. */\n")
foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    string(REPLACE "." "_" name "${PREFIX}${name}")
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND text "extern const char ${name}[];\nconst char ${name}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
