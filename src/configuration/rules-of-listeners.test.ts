import { describe } from 'node:test';
import { type RuleCase, testRules } from './test/rule-case.ts';

const socket = '{path: /run/h.sock, type: http';

const cases: RuleCase[] = [
  {
    rule: 'refuses a listener with both a port and a path',
    invalid: 'listeners: [{port: 1, path: /run/h.sock, type: http}]',
    kind: 'error',
    path: 'listeners[0].path',
    message: /cannot be given together with port/,
    valid: `listeners: [${socket}}]`,
  },
  {
    rule: 'refuses a listener with neither a port nor a path',
    invalid: 'listeners: [{type: http}]',
    kind: 'error',
    path: 'listeners[0]',
    message: /needs a port or a path/,
    valid: 'listeners: [{port: 8008, type: http}]',
  },
  {
    rule: 'refuses mode on a Unix socket whose type is not http',
    invalid: 'listeners: [{path: /run/h.sock, type: manhole, mode: 660}]',
    kind: 'error',
    path: 'listeners[0].mode',
    message: /needs type: http/,
    valid: `listeners: [${socket}, mode: 660}]`,
  },
  {
    rule: 'refuses mode on a Unix socket that serves metrics',
    invalid: `enable_metrics: true\nlisteners: [${socket}, mode: 660, resources: [{names: [metrics]}]}]`,
    kind: 'error',
    path: 'listeners[0].mode',
    message: /when metrics is among the resources/,
    valid: `listeners: [${socket}, mode: 660, resources: [{names: [client]}]}]`,
  },
  {
    rule: 'warns about mode on a listener without a path',
    invalid: 'listeners: [{port: 8008, type: http, mode: 660}]',
    kind: 'warning',
    path: 'listeners[0].mode',
    message: /has no effect without path/,
    valid: 'listeners: [{port: 8008, type: http}]',
  },
  {
    rule: 'refuses metrics as a resource on a Unix socket',
    invalid: `enable_metrics: true\nlisteners: [${socket}, resources: [{names: [metrics]}]}]`,
    kind: 'error',
    path: 'listeners[0].resources[0].names',
    message: /metrics cannot be served on a Unix socket/,
    valid: 'enable_metrics: true\nlisteners: [{port: 9000, type: http, resources: [{names: [metrics]}]}]',
  },
  {
    rule: 'refuses a metrics listener on a Unix socket',
    invalid: 'enable_metrics: true\nlisteners: [{path: /run/m.sock, type: metrics}]',
    kind: 'error',
    path: 'listeners[0].type',
    message: /metrics cannot be served on a Unix socket/,
    valid: 'enable_metrics: true\nlisteners: [{port: 9000, type: metrics}]',
  },
  {
    rule: 'warns about a metrics listener without enable_metrics',
    invalid: 'listeners: [{port: 9000, type: metrics}]',
    kind: 'warning',
    path: 'listeners[0].type',
    message: /unless enable_metrics is on/,
    valid: 'enable_metrics: true\nlisteners: [{port: 9000, type: metrics}]',
  },
  {
    rule: 'warns about bind_addresses on a Unix socket',
    invalid: `listeners: [${socket}, bind_addresses: ["::1"]}]`,
    kind: 'warning',
    path: 'listeners[0].bind_addresses',
    message: /has no effect on a Unix socket/,
    valid: 'listeners: [{port: 8008, type: http, bind_addresses: ["::1"]}]',
  },
  {
    rule: 'warns about tls on a Unix socket',
    invalid: `listeners: [${socket}, tls: true}]`,
    kind: 'warning',
    path: 'listeners[0].tls',
    message: /has no effect on a Unix socket/,
    valid: `listeners: [${socket}, tls: false}]`,
  },
  {
    rule: 'requires a certificate and a key for a listener with TLS',
    invalid: 'listeners: [{port: 8448, type: http, tls: true}]\ntls_certificate_path: a.pem',
    kind: 'error',
    path: 'listeners[0].tls',
    message: /needs tls_certificate_path and tls_private_key_path/,
    valid:
      'listeners: [{port: 8448, type: http, tls: true}]\ntls_certificate_path: a.pem\ntls_private_key_path: b.pem',
  },
  ...[
    'tag: a',
    'x_forwarded: true',
    'resources: [{names: [client]}]',
    'additional_resources: {/a: {module: m}}',
  ].map(
    (member): RuleCase => ({
      rule: `warns about ${member.split(':')[0]} on a listener whose type is not http`,
      invalid: `listeners: [{port: 9000, type: manhole, ${member}}]`,
      kind: 'warning',
      path: `listeners[0].${member.split(':')[0]}`,
      message: /has no effect with type: manhole/,
      valid: `listeners: [{port: 9000, type: http, ${member}}]`,
    }),
  ),
  {
    rule: 'warns about compress on resources that are never compressed',
    invalid: 'listeners: [{port: 8008, type: http, resources: [{names: [client, media], compress: true}]}]',
    kind: 'warning',
    path: 'listeners[0].resources[0].compress',
    message: /has no effect on media/,
    valid: 'listeners: [{port: 8008, type: http, resources: [{names: [client], compress: true}]}]',
  },
  {
    rule: 'warns about extra_well_known_client_content without public_baseurl',
    invalid: 'extra_well_known_client_content: {a: b}',
    kind: 'warning',
    path: 'extra_well_known_client_content',
    message: /has no effect without public_baseurl/,
    valid: 'extra_well_known_client_content: {a: b}\npublic_baseurl: "https://example.org/"',
  },
];

describe('configuration rules of listeners', () => {
  testRules(cases);
});
