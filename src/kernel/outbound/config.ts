import { cidr, list, nullable, option, type SectionType, section, string } from '../config/index.ts';

/**
 * Private, local, reserved and multicast ranges. Requests must not reach them when users or other servers choose the
 * target.
 */
export const privateRanges = [
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '192.0.0.0/24',
  '169.254.0.0/16',
  '192.88.99.0/24',
  '198.18.0.0/15',
  '192.0.2.0/24',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '::1/128',
  'fe80::/10',
  'fc00::/7',
  '2001:db8::/32',
  'ff00::/8',
  'fec0::/10',
] as const;

const proxy = () =>
  string({
    pattern: '^(https?://)?[^/\\s]+/?$',
    allowed: 'a proxy, for example http://user:password@proxy.example.org:3128',
  });

/** Options for all outbound requests. */
export const outboundSection = section({
  title: 'Outbound requests',
  description: 'How requests to other servers are sent, and which addresses they must not reach.',
  options: {
    http_proxy: option(nullable(proxy()), {
      description: 'The forward proxy for requests to `http` URLs.',
      default: null,
      secret: true,
    }),
    https_proxy: option(nullable(proxy()), {
      description: 'The forward proxy for requests to `https` URLs.',
      default: null,
      secret: true,
    }),
    no_proxy_hosts: option(list(string({ minLength: 1 })), {
      description: 'Host names, addresses and CIDR ranges that are reached without the proxy.',
      default: [],
    }),
    ip_range_blacklist: option(list(cidr()), {
      description:
        'Addresses that requests must not reach when users or other servers choose the target: federation, identity servers, push gateways, and the keys of third-party invites. `0.0.0.0` and `::` are always refused. Behind an HTTP proxy the list has no effect.',
      default: [...privateRanges],
      deprecatedNames: ['federation_ip_range_blacklist'],
      changed: ['1.25.0: replaces `federation_ip_range_blacklist`.'],
    }),
    ip_range_whitelist: option(list(cidr()), {
      description:
        'Exceptions from `ip_range_blacklist`: these addresses are allowed even if that list contains them.',
      default: [],
    }),
    federation_ip_range_blacklist: option(nullable(list(cidr())), {
      description:
        'Deprecated. Given beside `ip_range_blacklist`, it takes the place of that list and of its exceptions for requests of the federation. Given alone, it is another name of `ip_range_blacklist`.',
      default: null,
    }),
    user_agent_suffix: option(nullable(string()), {
      description: 'A text that is appended to the user agent of outbound requests.',
      default: null,
    }),
  },
  rules: [
    ({ http_proxy, https_proxy }, view) => {
      if ((http_proxy ?? https_proxy) !== null && view.isGiven('ip_range_blacklist')) {
        view.warn('ip_range_blacklist', 'has no effect on requests through a proxy');
      }
    },
  ],
});

export type OutboundConfig = SectionType<typeof outboundSection>;

/**
 * Returns the options for requests of the federation. If `federation_ip_range_blacklist` is given, it takes the place
 * of `ip_range_blacklist` and its exceptions.
 */
export function outboundConfigOfFederation(config: OutboundConfig): OutboundConfig {
  const { federation_ip_range_blacklist: refused } = config;
  return refused === null ? config : { ...config, ip_range_blacklist: refused, ip_range_whitelist: [] };
}
