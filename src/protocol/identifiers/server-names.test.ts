import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cpuTime } from '../../../test/support/clocks/cpu-time.ts';
import { isIpv4, isIpv6, isServerName, parseServerName } from './server-names.ts';

test('parseServerName parses the examples of the specification', () => {
  assert.deepEqual(parseServerName('matrix.org'), { host: 'matrix.org', port: undefined, kind: 'dns' });
  assert.deepEqual(parseServerName('matrix.org:8888'), { host: 'matrix.org', port: 8888, kind: 'dns' });
  assert.deepEqual(parseServerName('1.2.3.4'), { host: '1.2.3.4', port: undefined, kind: 'ipv4' });
  assert.deepEqual(parseServerName('1.2.3.4:1234'), { host: '1.2.3.4', port: 1234, kind: 'ipv4' });
  const ipv6 = { host: '1234:5678::abcd', kind: 'ipv6' };
  assert.deepEqual(parseServerName('[1234:5678::abcd]'), { ...ipv6, port: undefined });
  assert.deepEqual(parseServerName('[1234:5678::abcd]:5678'), { ...ipv6, port: 5678 });
});

test('isServerName accepts single labels, upper case and long names', () => {
  for (const name of ['localhost', 'EXAMPLE.org', 'a-b.c', 'x'.repeat(255), `${'x'.repeat(249)}:65535`]) {
    assert.ok(isServerName(name), name);
  }
});

test('parseServerName refuses malformed server names', () => {
  const wrong = [
    '',
    ':80',
    'example.org:',
    'example.org:http',
    'example.org:123456',
    'example.org:65536',
    'example.org:80:80',
    'example.org:-1',
    'exa mple.org',
    'example.org/',
    'exämple.org',
    'user@example.org',
    'x'.repeat(256),
    '[::1',
    '[::1]80',
    '[]',
    '[::g]',
    '[1.2.3.4]',
    '[::1%eth0]',
    'x[::1]',
    'example.org\n',
    'example.org\0',
  ];
  for (const name of wrong) assert.equal(parseServerName(name), undefined, JSON.stringify(name));
  assert.equal(isServerName(undefined), false);
});

test('isIpv4 accepts only four numbers up to 255', () => {
  for (const text of ['0.0.0.0', '255.255.255.255', '001.2.3.4']) assert.ok(isIpv4(text), text);
  for (const text of ['1.2.3', '1.2.3.4.5', '256.1.1.1', '1..2.3', 'a.b.c.d']) assert.ok(!isIpv4(text), text);
});

test('isIpv6 accepts the addresses of RFC 3513, section 2.2, and refuses malformed addresses', () => {
  const right = [
    'FEDC:BA98:7654:3210:FEDC:BA98:7654:3210',
    '1080::8:800:200C:417A',
    'FF01::101',
    '::1',
    '::',
    '1::',
    '::13.1.68.3',
    '::FFFF:129.144.52.38',
    '0:0:0:0:0:0:13.1.68.3',
    '1:2:3:4:5:6:7::',
  ];
  for (const text of right) assert.ok(isIpv6(text), text);
  const wrong = [
    '',
    ':',
    ':::',
    '1:2:3',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    '1:2:3:4:5:6:7:8::',
    '12345::',
    ':1::',
    '1.2.3.4',
    '1.2.3.4::',
    '::1.2.3',
    '::1.2.3.4:1',
    '::256.1.1.1',
  ];
  for (const text of wrong) assert.ok(!isIpv6(text), text);
});

test('isIpv4, isIpv6 and isServerName accept every generated address and host name', () => {
  fc.assert(fc.property(fc.ipV6(), (text) => isIpv6(text)));
  fc.assert(fc.property(fc.ipV4(), (text) => isIpv4(text)));
  fc.assert(fc.property(fc.domain(), fc.nat(65535), (host, port) => isServerName(`${host}:${port}`)));
});

test('parseServerName and isIpv6 refuse hostile text in bounded time', () => {
  const hostile = [
    '['.repeat(1e6),
    ':'.repeat(1e6),
    `[${':'.repeat(1e6)}]`,
    '1.'.repeat(1e6),
    'a'.repeat(1e7),
  ];
  const took = cpuTime(() => {
    for (const text of hostile) {
      assert.equal(parseServerName(text), undefined);
      assert.equal(isIpv6(text), false);
    }
  });
  assert.ok(took < 1000, `${took} ms`);
});
