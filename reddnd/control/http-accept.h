/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http-accept.h - what a client prefers, by its header Accept (RFC 9110, 12.5.1).
 *
 * Thread rules: pure.
 */
#ifndef CONTROL_HTTP_ACCEPT_H
#define CONTROL_HTTP_ACCEPT_H

/**
 * The weight, in thousandths, of the media type @type/@subtype in the value @accept of the header: that of
 * the most specific range that it is in; 0: it is not acceptable. NULL or "": no header, everything is 1000.
 * Other parameters of a range than "q" are not compared.
 */
unsigned http_accept_weight(const char *accept, const char *type, const char *subtype);

#endif
