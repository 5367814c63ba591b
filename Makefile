# docpatterns: BSON documents and document design patterns for PostgreSQL

EXTENSION = docpatterns
MODULE_big = docpatterns
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" docpatterns.control)

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c src/*/*/*.c)))

# The install script is these parts, joined in this order; a pattern needs nothing of another one.
SQL_PARTS = $(wildcard \
	sql/types.sql \
	sql/selectivity.sql \
	sql/text.sql \
	sql/compare.sql \
	sql/objectid.sql \
	sql/cast.sql \
	sql/access.sql \
	sql/contain.sql \
	sql/edit.sql \
	sql/diff.sql \
	sql/build.sql \
	sql/record.sql \
	sql/jsonb.sql \
	sql/aggregate.sql \
	sql/collection.sql \
	sql/filter.sql \
	sql/expression.sql \
	sql/update.sql \
	sql/projection.sql \
	sql/sort_key.sql \
	sql/schema.sql \
	sql/index.sql \
	sql/statistics.sql \
	sql/collection_index.sql \
	sql/collection_calls.sql \
	sql/collection_change.sql \
	sql/treepath.sql \
	sql/ancestors.sql \
	sql/graph.sql \
	sql/distinct.sql \
	sql/accumulate.sql \
	sql/pipeline.sql \
	sql/pipeline_window.sql \
	sql/pipeline_join.sql \
	sql/bucket.sql \
	sql/bucket_document.sql \
	sql/kit/shard.sql \
	sql/kit/tenant.sql \
	sql/kit/pattern_made.sql \
	sql/kit/pattern_owner.sql \
	sql/kit/pattern_tools.sql \
	sql/kit/pattern.sql \
	sql/kit/pattern_verbs.sql \
	sql/kit/pattern_views.sql \
	sql/kit/pattern_events.sql \
	sql/kit/derive.sql \
	sql/kit/maintain.sql) \
	$(sort $(wildcard sql/patterns/*.sql)) \
	sql/untyped.sql sql/advise/facts.sql $(sort $(filter-out sql/advise/facts.sql, \
	$(wildcard sql/advise/*.sql))) sql/pattern_advise.sql

# Steps between releases are in sql/upgrades. From each release that one leads away from, they are joined into a script to this
# version (see docs/releasing.md).
STEPS = $(wildcard sql/upgrades/docpatterns--*--*.sql)
UPGRADES = $(foreach step,$(STEPS),docpatterns--$(word 2,$(subst --, ,$(notdir $(step))))--$(EXTVERSION).sql)

DATA_built = docpatterns--$(EXTVERSION).sql $(UPGRADES)
EXTRA_CLEAN = docpatterns--*.sql

# Every .sql in test/sql is a regression test, every .spec in test/specs an isolation test; what is expected of them is in
# expected/ and expected/isolation/ (so that a pattern's two tests can share its name), their outputs stay in build/.
REGRESS = $(patsubst test/sql/%.sql,%,$(sort $(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test --outputdir=build/regress --load-extension=docpatterns
REGRESS_PREP = build/regress build/isolation
ISOLATION = $(patsubst test/specs/%.spec,%,$(sort $(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --outputdir=build/isolation --load-extension=docpatterns

BSON_PC ?= $(shell pkg-config --exists bson2 2>/dev/null && echo bson2 || echo libbson-1.0)

# These are system libraries wherever they are installed: what warns in their headers is not ours
LIBRARIES = $(BSON_PC) libpcre2-8 icu-i18n
PG_CPPFLAGS = -I$(CURDIR)/src $(patsubst -I%,-isystem%,$(shell pkg-config --cflags $(LIBRARIES)))
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -fno-semantic-interposition
SHLIB_LINK = -Wl,-Bsymbolic $(shell pkg-config --libs $(LIBRARIES))

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)

ifneq ($(wildcard $(PGXS)),)
include $(PGXS)
else
all install installcheck:
	@echo "$(PG_CONFIG) knows no PGXS: install PostgreSQL's server headers or set PG_CONFIG" >&2; exit 1
endif

# The compilers write beside each object and bitcode file which headers it depends on, so an edit rebuilds what includes it. A
# PostgreSQL built with --enable-depend does so for objects itself. Another PostgreSQL or compiler rebuilds all.
ifneq ($(autodepend),yes)
COMPILE.c += -MMD -MP -MF $@.d
endif
COMPILE.c.bc += -MMD -MP -MF $@.d
-include $(OBJS:%=%.d) $(OBJS:%.o=%.bc.d)
EXTRA_CLEAN += $(OBJS:%=%.d) $(OBJS:%.o=%.bc.d)
built_for := $(shell $(PG_CONFIG) --version 2>/dev/null) $(CC) $(COPT)
$(shell mkdir -p build; echo "$(built_for)" | cmp -s - build/built-for || echo "$(built_for)" >build/built-for)
$(OBJS) $(OBJS:.o=.bc): build/built-for

build/regress build/isolation:
	@mkdir -p $@

docpatterns--$(EXTVERSION).sql: $(SQL_PARTS) Makefile docpatterns.control
	@for part in $(wildcard sql/*.sql sql/kit/*.sql sql/patterns/*.sql sql/advise/*.sql); do \
	  case " $(SQL_PARTS) " in *" $$part "*) ;; \
	  *) echo "$$part is not in SQL_PARTS of the Makefile" >&2; exit 1;; esac; \
	done
	@{ printf '%s\n' '\echo Use "CREATE EXTENSION docpatterns" to load this file. \quit'; cat $(SQL_PARTS); } > $@

$(UPGRADES): docpatterns--%--$(EXTVERSION).sql: sql/upgrades/join.pl $(STEPS) $(SQL_PARTS) Makefile docpatterns.control
	@sql/upgrades/join.pl $* $(EXTVERSION) $(SQL_PARTS) > $@.part && mv $@.part $@

# What is committed, to be built elsewhere: a tarball, and the zip that PGXN takes. The same commit makes the same bytes.
DIST = docpatterns-$(EXTVERSION)
dist:
	@mkdir -p build
	@for format in tar.gz zip; do \
	  git archive --format=$$format --prefix=$(DIST)/ -o build/$(DIST).$$format HEAD && echo build/$(DIST).$$format || exit 1; \
	done

# The package for Debian's PostgreSQL, of what is committed.
deb: dist
	@test/env/packages.sh deb
	@rm -rf build/deb && mkdir build/deb && tar -xzf build/$(DIST).tar.gz -C build/deb && cd build/deb/$(DIST) && \
	  { { pg_buildext updatecontrol && dpkg-buildpackage -b -us -uc; } >../build.log 2>&1 || { tail -n 30 ../build.log; exit 1; }; }
	@rm -rf build/deb/$(DIST) && ls build/deb/*.deb

# The install script of a release, kept for the tests of upgrades from it. What is kept is never written again.
keep-release: docpatterns--$(EXTVERSION).sql
	@mkdir -p test/releases
	@[ ! -e test/releases/$<.gz ] || { echo "test/releases/$<.gz is kept already" >&2; exit 1; }
	@gzip -9nc $< > test/releases/$<.gz && echo test/releases/$<.gz

# The commands that do everything themselves, on a private cluster under build/ (see test/env). They set up what is missing.
SUITES = build regress pgtap isolation t docs clients fuzz
.PHONY: dist deb format docs-html reference pictures keep-release demo demo-stop test stress $(SUITES:%=test-%) docs-test bench sanitize coverage valgrind soak test-matrix test-pg-upgrade test-package clean-clusters

demo:
	@test/env/packages.sh build && demo/run.sh

demo-stop:
	@CLUSTER=demo test/env/cluster.sh stop

# All suites, or those named: make test SUITE="regress pgtap"
test:
	@test/env/packages.sh test
	@case "$(SUITE)" in ''|*clients*) test/env/packages.sh clients ;; esac
	@case "$(SUITE)" in ''|*docs*) test/env/packages.sh extensions ;; esac
	@test/run.sh $(SUITE)

$(SUITES:%=test-%): test-%:
	@$(MAKE) -s test SUITE=$*

# The examples in the docs.
docs-test: test-docs

# The pictures of the docs are drawn from text.
pictures:
	@docs/pictures/draw.pl docs/pictures/*.txt

# The docs as a site with search, in build/html.
docs-html:
	@test/env/packages.sh docs && docs/html.sh

# Signatures and comments of the functions, from the catalog into the pages.
reference:
	@test/env/cluster.sh start && test/env/cluster.sh psql -q -c 'DROP DATABASE IF EXISTS dp_docs' -c 'CREATE DATABASE dp_docs' 2>/dev/null && \
	  export PGDATABASE=dp_docs && test/env/cluster.sh psql -q -c 'CREATE EXTENSION docpatterns' && \
	  test/env/cluster.sh run test/env/reference.pl --update docs/*.md docs/*/*.md

# Many writers at once, for STRESS_SECONDS each; SEED gives other ones, FILTER=derive_stress one of the scripts.
stress: export STRESS_SECONDS ?= 60
stress: export FILTER ?= *_@(stress|churn)
stress:
	@test/env/packages.sh test && TIMEOUT=$$((STRESS_SECONDS * 2 + 120)) test/run.sh t

# The layout of .clang-format for all C files. Other versions of clang-format lay out some lines otherwise.
format:
	@clang-format --version | grep -q 'version 14\.' || { echo "make format needs clang-format 14 (Debian 12: apt-get install clang-format)" >&2; exit 1; }
	@git ls-files '*.[ch]' | xargs clang-format -i

bench:
	@test/env/packages.sh build && bench/run.sh

sanitize:
	@test/env/packages.sh test && test/sanitize.sh $(SUITE)

# The type's suites under memcheck.
valgrind:
	@test/env/packages.sh valgrind && test/valgrind.sh $(SUITE)

# Everything that takes a seed, for SOAK_MINUTES in all.
soak:
	@test/env/packages.sh test && test/soak.sh

# Which lines and branches of src/ the suites run: a report under build/coverage/report (see docs/coverage.md).
coverage:
	@test/env/packages.sh test && test/coverage.sh $(SUITE)

test-matrix:
	@test/env/packages.sh matrix && test/matrix.sh

# From PostgreSQL 15 to 17 by pg_upgrade, and the packages for Debian, in chroots like those of the matrix.
test-pg-upgrade:
	@test/env/packages.sh matrix && test/matrix.sh pg_upgrade

test-package:
	@test/env/packages.sh matrix && test/matrix.sh package

# Private clusters are stopped before their files go.
clean: clean-clusters
clean-clusters:
	@test/env/cluster.sh clean
