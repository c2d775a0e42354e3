import type { Answer } from './compared-server.ts';

/** Fields whose values differ between any two servers: only their presence and type are compared. */
const opaqueFields = new Set([
  ...['access_token', 'refresh_token', 'device_id', 'session', 'login_token', 'sid', 'client_secret'],
  ...['etag', 'event_id', 'replaced_by'],
  ...['origin_server_ts', 'ts', 'age', 'age_ts', 'last_active_ago', 'last_seen_ts', 'creation_ts'],
  ...['valid_until_ts', 'unused_expires_at', 'expires_in_ms', 'received_ts', 'joined_ts', 'last_seen'],
  ...[
    'last_seen_user_agent',
    'stream_id',
    'bump_stamp',
    'user_agent',
    'sha256',
    'auth_events',
    'prev_events',
    'depth',
    'public_key',
  ],
  ...['error', 'rank', 'matrix_server_name', 'token'],
  // Of the admin API.
  ...['media_id', 'deleted_media', 'created_ts', 'added_at', 'validated_at', 'nonce', 'state_group'],
  ...['delete_id', 'redact_id', 'purge_id', 'server_version'],
]);

/** Positions and filter ids: only their presence and type are compared, even if their values were saved. */
const tokens = new Set(['next_batch', 'prev_batch', 'start', 'end', 'pos', 'filter_id']);

/** Maps whose keys differ between any two servers: only the values are compared. */
const opaqueKeys = new Set(['signatures', 'verify_keys']);

/** Lists without an order. */
const sets = new Set(['joined_rooms', 'flows', 'aliases', 'servers', 'auth_chain', 'actions', 'conditions']);

/** Fields whose `events` are in an order that the server chooses. */
const eventSets = new Set(['state', 'account_data', 'presence', 'invite_state', 'knock_state', 'ephemeral']);

/** Ids that each server chooses, and the placeholders that replace them in every text. */
const patterns: readonly (readonly [RegExp, string])[] = [
  [/\$[\w-]{43}/g, '<event id>'],
  [/![\w-]{43}|!\w{18}(?=:)/g, '<room id>'],
  [/(mxc:\/\/[^/"]+)\/[\w-]+/g, '$1/<media id>'],
];

/**
 * Replaces values that each server chooses itself with placeholders: a saved value with its name, an opaque value with
 * its type.
 */
export function normalized(
  { status, headers, body }: Answer,
  saved: ReadonlyMap<string, string>,
  {
    url,
    anyOrder,
    comparedHeaders,
  }: { readonly url: string; readonly anyOrder: boolean; readonly comparedHeaders: readonly string[] },
) {
  // Short values, such as the version of a key backup, may occur in any other text.
  const replacements = [...saved]
    .filter(([, value]) => value.length > 3)
    .sort(([, one], [, other]) => other.length - one.length);
  const withPlaceholders = (value: string): string => {
    let replaced = value.replaceAll(url, '{url}');
    for (const [name, savedValue] of replacements) replaced = replaced.replaceAll(savedValue, `{${name}}`);
    for (const [pattern, placeholder] of patterns) replaced = replaced.replace(pattern, placeholder);
    return replaced;
  };
  /**
   * Returns a value with placeholders.
   * @param field the name of the field that has this value; empty for an item of a list and for the body
   * @param parent the name of the field that contains this field
   */
  const walk = (value: unknown, field: string, parent: string): unknown => {
    if (Array.isArray(value)) {
      if (opaqueFields.has(field)) return '<list>';
      const items = value.map((item) => walk(item, '', field));
      const isSet = anyOrder || sets.has(field) || (field === 'events' && eventSets.has(parent));
      return isSet ? sorted(items) : items;
    }
    if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value).map(([key, inner], index): [string, unknown] => [
        opaqueKeys.has(parent) || opaqueKeys.has(field) ? `<key ${index}>` : withPlaceholders(key),
        field === 'signatures' || parent === 'signatures'
          ? walk(inner, key, 'signatures')
          : walk(inner, key, field),
      ]);
      return Object.fromEntries(entries);
    }
    const isToken = tokens.has(field);
    if (typeof value === 'string' && !isToken && replacements.some(([, savedValue]) => savedValue === value))
      return withPlaceholders(value);
    const isOpaque =
      isToken || opaqueFields.has(field) || parent === 'signatures' || parent.startsWith('ed25519:');
    if (isOpaque) return value === null ? null : `<${typeof value}>`;
    return typeof value === 'string' ? withPlaceholders(value) : value;
  };
  return {
    status,
    ...(comparedHeaders.length > 0 && {
      headers: Object.fromEntries(
        comparedHeaders.map((name) => [
          name,
          headers[name] === undefined ? 'absent' : withPlaceholders(headers[name]),
        ]),
      ),
    }),
    body: walk(body, '', ''),
  };
}

function sorted(items: readonly unknown[]): unknown[] {
  return items
    .map((item) => ({ item, key: JSON.stringify(item) }))
    .sort((one, other) => (one.key < other.key ? -1 : 1))
    .map(({ item }) => item);
}
