import { describe } from 'node:test';
import { type RuleCase, testRules } from './test/rule-case.ts';

const socket = '{path: /run/h.sock, type: http';

const cases: RuleCase[] = [
  {
    rule: 'a listener has a port or a path, not both',
    breaks: 'listeners: [{port: 1, path: /run/h.sock, type: http}]',
    kind: 'error',
    path: 'listeners[0].path',
    says: /cannot be given together with port/,
    keeps: `listeners: [${socket}}]`,
  },
  {
    rule: 'a listener has a port or a path',
    breaks: 'listeners: [{type: http}]',
    kind: 'error',
    path: 'listeners[0]',
    says: /needs a port or a path/,
    keeps: 'listeners: [{port: 8008, type: http}]',
  },
  {
    rule: 'the mode of a socket needs http',
    breaks: 'listeners: [{path: /run/h.sock, type: manhole, mode: 660}]',
    kind: 'error',
    path: 'listeners[0].mode',
    says: /needs type: http/,
    keeps: `listeners: [${socket}, mode: 660}]`,
  },
  {
    rule: 'a socket with a mode does not serve metrics',
    breaks: `enable_metrics: true\nlisteners: [${socket}, mode: 660, resources: [{names: [metrics]}]}]`,
    kind: 'error',
    path: 'listeners[0].mode',
    says: /when metrics is among the resources/,
    keeps: `listeners: [${socket}, mode: 660, resources: [{names: [client]}]}]`,
  },
  {
    rule: 'a mode is for sockets',
    breaks: 'listeners: [{port: 8008, type: http, mode: 660}]',
    kind: 'warning',
    path: 'listeners[0].mode',
    says: /has no effect without path/,
    keeps: 'listeners: [{port: 8008, type: http}]',
  },
  {
    rule: 'metrics as a resource are not on sockets',
    breaks: `enable_metrics: true\nlisteners: [${socket}, resources: [{names: [metrics]}]}]`,
    kind: 'error',
    path: 'listeners[0].resources[0].names',
    says: /metrics cannot be served on a Unix socket/,
    keeps: 'enable_metrics: true\nlisteners: [{port: 9000, type: http, resources: [{names: [metrics]}]}]',
  },
  {
    rule: 'a metrics listener is not on a socket',
    breaks: 'enable_metrics: true\nlisteners: [{path: /run/m.sock, type: metrics}]',
    kind: 'error',
    path: 'listeners[0].type',
    says: /metrics cannot be served on a Unix socket/,
    keeps: 'enable_metrics: true\nlisteners: [{port: 9000, type: metrics}]',
  },
  {
    rule: 'metrics are served when they are collected',
    breaks: 'listeners: [{port: 9000, type: metrics}]',
    kind: 'warning',
    path: 'listeners[0].type',
    says: /unless enable_metrics is on/,
    keeps: 'enable_metrics: true\nlisteners: [{port: 9000, type: metrics}]',
  },
  {
    rule: 'a socket has no addresses',
    breaks: `listeners: [${socket}, bind_addresses: ["::1"]}]`,
    kind: 'warning',
    path: 'listeners[0].bind_addresses',
    says: /has no effect on a Unix socket/,
    keeps: 'listeners: [{port: 8008, type: http, bind_addresses: ["::1"]}]',
  },
  {
    rule: 'a socket has no TLS',
    breaks: `listeners: [${socket}, tls: true}]`,
    kind: 'warning',
    path: 'listeners[0].tls',
    says: /has no effect on a Unix socket/,
    keeps: `listeners: [${socket}, tls: false}]`,
  },
  {
    rule: 'a listener with TLS needs certificate and key',
    breaks: 'listeners: [{port: 8448, type: http, tls: true}]\ntls_certificate_path: a.pem',
    kind: 'error',
    path: 'listeners[0].tls',
    says: /needs tls_certificate_path and tls_private_key_path/,
    keeps:
      'listeners: [{port: 8448, type: http, tls: true}]\ntls_certificate_path: a.pem\ntls_private_key_path: b.pem',
  },
  ...[
    'tag: a',
    'x_forwarded: true',
    'resources: [{names: [client]}]',
    'additional_resources: {/a: {module: m}}',
  ].map(
    (member): RuleCase => ({
      rule: `only http listeners have ${member.split(':')[0]}`,
      breaks: `listeners: [{port: 9000, type: manhole, ${member}}]`,
      kind: 'warning',
      path: `listeners[0].${member.split(':')[0]}`,
      says: /has no effect with type: manhole/,
      keeps: `listeners: [{port: 9000, type: http, ${member}}]`,
    }),
  ),
  {
    rule: 'not everything can be compressed',
    breaks: 'listeners: [{port: 8008, type: http, resources: [{names: [client, media], compress: true}]}]',
    kind: 'warning',
    path: 'listeners[0].resources[0].compress',
    says: /has no effect on media/,
    keeps: 'listeners: [{port: 8008, type: http, resources: [{names: [client], compress: true}]}]',
  },
  {
    rule: 'the client well-known needs a public URL',
    breaks: 'extra_well_known_client_content: {a: b}',
    kind: 'warning',
    path: 'extra_well_known_client_content',
    says: /has no effect without public_baseurl/,
    keeps: 'extra_well_known_client_content: {a: b}\npublic_baseurl: "https://example.org/"',
  },
];

describe('rules of listeners', () => {
  testRules(cases);
});
