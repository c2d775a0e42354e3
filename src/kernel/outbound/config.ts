import { cidr, list, nullable, option, type SectionType, section, string } from '../config/index.ts';

/** Ranges that are private, local, reserved or otherwise no place for a request that a stranger causes. */
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
    allowed: 'a proxy such as http://user:password@proxy.example.org:3128',
  });

/** How requests to other servers leave the house. */
export const outboundSection = section({
  title: 'Outbound requests',
  description: 'How requests to other servers leave the house, and where they may not go.',
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
        'Addresses to which requests are refused when others choose their target: federation, identity servers, push gateways, and the keys of third-party invites. `0.0.0.0` and `::` are refused whatever this list says. Behind an HTTP proxy the list has no effect.',
      default: [...privateRanges],
      deprecatedNames: ['federation_ip_range_blacklist'],
      changed: ['1.25.0: replaces `federation_ip_range_blacklist`.'],
    }),
    ip_range_whitelist: option(list(cidr()), {
      description: 'Exceptions from `ip_range_blacklist`: these addresses are allowed even if it names them.',
      default: [],
    }),
    user_agent_suffix: option(nullable(string()), {
      description: 'A text to append to the user agent of outbound requests.',
      default: null,
    }),
  },
  rules: [
    ({ http_proxy, https_proxy }, view) => {
      if ((http_proxy ?? https_proxy) !== null && view.given('ip_range_blacklist')) {
        view.warn('ip_range_blacklist', 'has no effect on requests that go through a proxy');
      }
    },
  ],
});

export type OutboundConfig = SectionType<typeof outboundSection>;
