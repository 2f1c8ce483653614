# Writes the man page of a command from its own --help: cmake -DPROGRAM=... -DNAME=... -DVERSION=... -DOUTPUT=... -P manpage.cmake
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "${NAME} --help ended with ${status}")
endif()
# roff takes a backslash for a command, and a dot or a quote at the start of a line too
string(REPLACE "\\" "\\e" help "${help}")
string(REPLACE "-" "\\-" help "${help}")
string(REGEX REPLACE "\n([.'])" "\n\\\\&\\1" help "${help}")
file(WRITE ${OUTPUT} ".TH ${NAME} 1 \"\" \"qdnn ${VERSION}\" \"qdnn\"\n.SH NAME\n${NAME} \\- a command of qdnn\n.SH DESCRIPTION\n.nf\n${help}\n.fi\n")
