#!/bin/sh
# Makes the template for several workers on one machine from the unit for one.
sed -e '1,/^$/s/^# synthbot: a chat bot\..*/# synthbot: one of several workers on this machine, each with its own configuration file and data/' \
    -e '1,/^$/s/^# install it by hand.*/# directory; see docs\/scaling.md. Made from synthbot.service. To install it by hand, copy it to\n# \/etc\/systemd\/system\/synthbot@.service./' \
    -e 's/^Description=.*/& (%i)/' \
    -e 's/config\.toml/%i.toml/' -e 's/%S\/synthbot$/&-%i/' -e 's/^StateDirectory=synthbot$/&-%i/' \
    -e 's/^StartLimitIntervalSec=.*/StartLimitIntervalSec=0/' -e '/^StartLimitBurst=/d' \
    -e 's/^#LoadCredentialEncrypted=/SetCredential=database_url:\\n\nLoadCredential=database_url:\/etc\/synthbot\/database_url\n&/' \
    synthbot.service >synthbot@.service
