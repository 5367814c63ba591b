# docpatterns: BSON documents and document design patterns for PostgreSQL

EXTENSION = docpatterns
MODULE_big = docpatterns
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" docpatterns.control)

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))

# The install script is these parts, joined in this order.
SQL_PARTS = $(wildcard \
	sql/types.sql \
	sql/text.sql \
	sql/objectid.sql \
	sql/cast.sql \
	sql/compare.sql \
	sql/access.sql \
	sql/contain.sql \
	sql/edit.sql \
	sql/build.sql \
	sql/record.sql \
	sql/jsonb.sql \
	sql/aggregate.sql \
	sql/collection.sql \
	sql/pattern.sql \
	sql/patterns/outlier.sql)

DATA_built = docpatterns--$(EXTVERSION).sql
EXTRA_CLEAN = docpatterns--*.sql build

BSON_PC ?= $(shell pkg-config --exists bson2 2>/dev/null && echo bson2 || echo libbson-1.0)

PG_CPPFLAGS = -I$(CURDIR)/src $(shell pkg-config --cflags $(BSON_PC))
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -fno-semantic-interposition
SHLIB_LINK = -Wl,-Bsymbolic $(shell pkg-config --libs $(BSON_PC))

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# PostgreSQL is usually built without dependency tracking: any header rebuilds all.
$(OBJS): $(wildcard src/*.h src/*/*.h)

docpatterns--$(EXTVERSION).sql: $(SQL_PARTS) Makefile docpatterns.control
	@for part in $(wildcard sql/*.sql sql/patterns/*.sql); do \
	  case " $(SQL_PARTS) " in *" $$part "*) ;; \
	  *) echo "$$part is not in SQL_PARTS of the Makefile" >&2; exit 1;; esac; \
	done
	@{ printf '%s\n' '\echo Use "CREATE EXTENSION docpatterns" to load this file. \quit'; cat $(SQL_PARTS); } > $@
