import { isUserId, type JsonObject, parseServerName } from '../protocol/index.ts';

/** Options that decide the content of `/.well-known`. */
export interface WellKnownOptions {
  readonly server_name: string;
  readonly public_baseurl: string | null;
  readonly extra_well_known_client_content: Readonly<Record<string, unknown>>;
  readonly default_identity_server: string | null;
  readonly serve_server_wellknown: boolean;
  readonly admin_contact: string | null;
}

/**
 * Returns the base URLs for clients; `undefined` without `public_baseurl`. `extra_well_known_client_content` cannot
 * override these URLs.
 * Source: client-server API, "Well-known URIs".
 */
export function clientWellKnown(options: WellKnownOptions): JsonObject | undefined {
  const { default_identity_server: identityServer, public_baseurl: baseUrl } = options;
  if (baseUrl === null) return undefined;
  return {
    ...(options.extra_well_known_client_content as JsonObject),
    'm.homeserver': { base_url: baseUrl },
    ...(identityServer !== null && { 'm.identity_server': { base_url: identityServer } }),
  };
}

/**
 * Returns the delegation to port 443 of the host in `server_name`; `undefined` when the options do not enable it.
 * Source: server-server API, "Server discovery".
 */
export function serverWellKnown(options: WellKnownOptions): JsonObject | undefined {
  if (!options.serve_server_wellknown) return undefined;
  const parts = parseServerName(options.server_name);
  const host = parts?.kind === 'ipv6' ? `[${parts.host}]` : (parts?.host ?? options.server_name);
  return { 'm.server': `${host}:443` };
}

/**
 * Returns the contact of the administrator: an email address, a user id or a page. Returns `undefined` for a contact of
 * another form.
 * Source: client-server API, `GET /.well-known/matrix/support`.
 */
export function supportWellKnown({ admin_contact: contact }: WellKnownOptions): JsonObject | undefined {
  if (contact === null) return undefined;
  const role = 'm.role.admin';
  const address = contact.replace(/^mailto:/i, '');
  if (isUserId(contact)) return { contacts: [{ matrix_id: contact, role }] };
  if (/^https?:\/\/\S+$/i.test(contact)) return { support_page: contact };
  if (/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(address)) return { contacts: [{ email_address: address, role }] };
  return undefined;
}
