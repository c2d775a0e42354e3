import { type Alias, mapNode, type SourceNode, scalarNode } from '../kernel/config/index.ts';

/**
 * Other names that are accepted for options. Deprecated names (`old: true`) cause a warning; other spellings, which
 * configurations of other homeservers have, cause none.
 */
export const aliases: readonly Alias[] = [
  { name: 'matrix_authentication_service', option: 'proto_authentication_service', old: false },
  { name: 'matrix_rtc', option: 'proto_rtc', old: false },
  {
    name: 'allow_underscore_prefixed_localpart',
    option: 'allow_underscore_prefixed_registration',
    old: false,
  },
  { name: 'use_presence', option: 'presence.enabled', old: true },
  {
    name: 'federation_ip_range_blacklist',
    option: 'ip_range_blacklist',
    old: true,
    meaningWhenBothAreGiven: 'it counts for federation only',
  },
  { name: 'riot_base_url', within: 'email', option: 'client_base_url', old: true },
  { name: 'expiry_time', within: 'caches', option: 'cache_entry_ttl', old: true },
  { name: 'bind_address', within: 'listeners[]', option: 'bind_addresses', old: true, convert: asList },
  { name: 'perspectives', option: 'trusted_key_servers', old: true, convert: keyServersOf },
  { name: 'oidc_config', option: 'oidc_providers', old: true, convert: providersOf },
];

function asList(node: SourceNode): SourceNode {
  return { kind: 'list', items: [node], at: node.at };
}

/** Converts `{servers: {name: {verify_keys: {id: {key}}}}}` to a list of servers with `{id: key}`. */
function keyServersOf(node: SourceNode): SourceNode {
  const servers = node.kind === 'map' ? node.entries.get('servers')?.node : undefined;
  if (servers?.kind !== 'map') return { kind: 'list', items: [], at: node.at };
  const items = [...servers.entries].map(([name, { node: server, at }]) => {
    const keys = server.kind === 'map' ? server.entries.get('verify_keys')?.node : undefined;
    const listed = keys?.kind === 'map' ? [...keys.entries] : [];
    const verifyKeys = listed.map(([id, { node: key }]) => [id, keyOf(key)] as const);
    const serverName = ['server_name', { ...scalarNode(name), at }] as const;
    return mapNode(
      verifyKeys.length > 0 ? [serverName, ['verify_keys', mapNode(verifyKeys, at)]] : [serverName],
      at,
    );
  });
  return { kind: 'list', items, at: node.at };
}

function keyOf(node: SourceNode): SourceNode {
  return node.kind === 'map' ? (node.entries.get('key')?.node ?? node) : node;
}

/**
 * Converts the deprecated option of a single provider to a list of one provider. Its id is `oidc` by default: the
 * external ids that are stored for its users contain this id. Returns `undefined` when the provider is not enabled.
 */
function providersOf(node: SourceNode): SourceNode | undefined {
  if (node.kind !== 'map') return node;
  const enabled = node.entries.get('enabled')?.node;
  const isEnabled = enabled?.kind === 'scalar' && /^(true|yes|on)$/i.test(enabled.text);
  if (!isEnabled) return undefined;
  const entries = new Map(node.entries);
  entries.delete('enabled');
  if (!entries.has('idp_id')) entries.set('idp_id', { node: scalarNode('oidc') });
  return { kind: 'list', items: [{ ...node, entries }], at: node.at };
}
