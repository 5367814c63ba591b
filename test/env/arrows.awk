# Who may include whom among the rooms of src/, and nobody itself by a detour:
#
#   awk -f test/env/arrows.awk src/*.[ch] src/*/*.[ch]
#
# prints each #include that goes against the arrows and each header from which a circle is reached; nothing when all is well.
# docs/developing.md says what the rooms are for.
BEGIN {
	may["mql"] = "bson"
	may["index"] = "bson mql"
	may["tree"] = "bson mql"
	may["bucket"] = "bson mql"
	may["patterns"] = "bson mql tree bucket"
	# the relation of the bucket pattern is one of the patterns and uses their toolkit; the type beneath it does not
	split("fdw.c fdw.h maintain.c modify.c rel.c", names, " ")
	for (i in names)
		relation["bucket/" names[i]] = 1
	toolkit = " patterns/change.h patterns/declaration.h patterns/lookup.h patterns/run.h patterns/sqlgen.h "
}

FNR == 1 {
	file = FILENAME
	sub(/^(.*\/)?src\//, "", file)
	from = file ~ /\// ? substr(file, 1, index(file, "/") - 1) : ""
}

/^#include "(bson|mql|index|tree|bucket|patterns)\// {
	split($2, quoted, "\"")
	header = quoted[2]
	to = substr(header, 1, index(header, "/") - 1)
	if (from == "" && file != "docpatterns.c")
		print file " includes " header ", but knows no room"
	else if (from != "" && to != from && index(" " may[from] " ", " " to " ") == 0 \
			&& !(file in relation && index(toolkit, " " header " ")))
		print file " includes " header ", but " from "/ does not know " to "/"
	if (file ~ /\.h$/) {
		includes[file] = includes[file] header " "
		headers[file] = 1
	}
}

# Headers that include none that is left are taken away, again and again: what stays is a circle, or leads to one.
END {
	do {
		taken = 0
		for (header in headers) {
			n = split(includes[header], names, " ")
			for (i = 1; i <= n && !(names[i] in headers); i++)
				;
			if (i > n) {
				delete headers[header]
				taken = 1
			}
		}
	} while (taken)
	for (header in headers)
		print header " is in a circle of headers, or leads to one, by way of " includes[header]
}
