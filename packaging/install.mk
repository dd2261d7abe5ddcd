# SPDX-License-Identifier: GPL-2.0
# make install, uninstall and man: what goes where. DESTDIR and PREFIX as everywhere; the
# configuration is /etc/weir/weir.yaml whatever PREFIX, and is never overwritten.

SYSCONFDIR ?= /etc
UNITDIR    ?= $(PREFIX)/lib/systemd/system
ZSHDIR     ?= $(PREFIX)/share/zsh/site-functions
EXAMPLES   := packaging/weir.yaml $(wildcard packaging/examples/*.yaml packaging/grafana/*.json \
	packaging/prometheus/*.yml)
MAN_SRC    := $(wildcard man/*.scd)
MAN_PAGES  := $(MAN_SRC:man/%.scd=$(B)/man/%)
D           = $(DESTDIR)$(PREFIX)

.PHONY: man install uninstall

man: $(MAN_PAGES)
weir: man

# Reproducible: dated by the source, or by SOURCE_DATE_EPOCH.
$(B)/man/%: man/%.scd
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D) && SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(stat -c %Y $<)} scdoc <$< >$@

install: weir install-lib
	install -d $(D)/bin $(D)/share/man/man8 $(D)/share/man/man5 $(DESTDIR)$(SYSCONFDIR)/weir \
		$(D)/share/doc/weir/examples $(DESTDIR)$(UNITDIR) $(D)/lib/sysusers.d \
		$(D)/share/bash-completion/completions $(DESTDIR)$(ZSHDIR) \
		$(D)/share/fish/vendor_completions.d
	install -m 755 $(B)/weir $(D)/bin/weir
	install -m 644 $(filter %.8,$(MAN_PAGES)) $(D)/share/man/man8
	install -m 644 $(filter %.5,$(MAN_PAGES)) $(D)/share/man/man5
	install -m 644 $(EXAMPLES) $(D)/share/doc/weir/examples
	test -e $(DESTDIR)$(SYSCONFDIR)/weir/weir.yaml || \
		install -m 644 packaging/weir.yaml $(DESTDIR)$(SYSCONFDIR)/weir/weir.yaml
	sed 's|/usr/bin/weir|$(PREFIX)/bin/weir|' packaging/weir.service \
		>$(DESTDIR)$(UNITDIR)/weir.service
	install -m 644 packaging/weir.sysusers.conf $(D)/lib/sysusers.d/weir.conf
	install -m 644 packaging/completion/weir.bash $(D)/share/bash-completion/completions/weir
	install -m 644 packaging/completion/weir.zsh $(DESTDIR)$(ZSHDIR)/_weir
	install -m 644 packaging/completion/weir.fish $(D)/share/fish/vendor_completions.d/weir.fish

# All that install laid, but the configuration. Folders only where they are weir's and empty.
uninstall:
	rm -f $(D)/bin/weir $(addprefix $(D)/share/man/man8/,$(notdir $(filter %.8,$(MAN_PAGES)))) \
		$(addprefix $(D)/share/man/man5/,$(notdir $(filter %.5,$(MAN_PAGES)))) \
		$(addprefix $(D)/share/doc/weir/examples/,$(notdir $(EXAMPLES))) \
		$(DESTDIR)$(UNITDIR)/weir.service $(D)/lib/sysusers.d/weir.conf \
		$(D)/share/bash-completion/completions/weir $(DESTDIR)$(ZSHDIR)/_weir \
		$(D)/share/fish/vendor_completions.d/weir.fish \
		$(addprefix $(D)/,$(LIB_HEADERS)) $(D)/$(LIBDIR)/libweir.a $(D)/$(LIBDIR)/libweir.so \
		$(D)/$(LIBDIR)/$(LIB_SONAME) $(D)/$(LIBDIR)/libweir.so.$(LIB_VERSION) \
		$(D)/$(LIBDIR)/pkgconfig/weir.pc
	-rmdir $(D)/share/doc/weir/examples $(D)/share/doc/weir $(D)/include/weir
