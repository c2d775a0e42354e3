import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatIpRange, IpRangeSet, parseIpRange } from './ip-range.ts';

const canonical = (text: string) => {
  const range = parseIpRange(text);
  return range && formatIpRange(range);
};

test('formatIpRange writes ranges and single addresses in canonical form', () => {
  const expected: Record<string, string> = {
    '10.0.0.0/8': '10.0.0.0/8',
    '192.0.2.1': '192.0.2.1/32',
    '10.1.2.3/8': '10.0.0.0/8',
    'fc00::1/7': 'fc00::/7',
    '0.0.0.0/0': '0.0.0.0/0',
    '::1/128': '::1/128',
    '::': '::/128',
    '::/0': '::/0',
    'FE80::/10': 'fe80::/10',
    '2001:0db8:0000:0000:0000:0000:0000:0000/32': '2001:db8::/32',
    '2001:db8:0:1:0:0:0:1': '2001:db8:0:1::1/128',
    '1:0:2:0:0:3:0:0': '1:0:2::3:0:0/128',
    '::ffff:10.0.0.0/104': '::ffff:a00:0/104',
  };
  for (const [text, range] of Object.entries(expected)) assert.equal(canonical(text), range, text);
});

test('parseIpRange rejects texts that are not IP ranges', () => {
  const texts = ['', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/08', '10.0.0/8', '010.0.0.0/8', '::1/129', '/8'];
  for (const text of [
    ...texts,
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    'fe80::1%eth0/64',
    'localhost',
    '10.0.0.0 /8',
  ]) {
    assert.equal(parseIpRange(text), undefined, text);
  }
});

const ipv4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)).map((octets) => octets.join('.'));
const group = fc.oneof(
  fc.constant('0'),
  fc.nat(0xffff).map((number) => number.toString(16)),
);
const ipv6 = fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(':'));

test('parsing and formatting an address as a range keeps the address, also a second time', () => {
  fc.assert(
    fc.property(fc.oneof(ipv4, ipv6), (address) => {
      const text = canonical(address) ?? '';
      assert.equal(canonical(text), text);
      const list = new BlockList();
      const family = address.includes(':') ? 'ipv6' : 'ipv4';
      list.addAddress(text.replace(/\/.*/, ''), family);
      assert.ok(list.check(address, family));
    }),
  );
});

test('IpRangeSet contains exactly the addresses that share the prefix of a range', () => {
  fc.assert(
    fc.property(ipv4, ipv4, fc.nat(32), (base, other, prefix) => {
      const number = (address: string) =>
        address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
      const size = 2 ** (32 - prefix);
      const start = Math.floor(number(base) / size) * size;
      const network = [24, 16, 8, 0].map((shift) => Math.floor(start / 2 ** shift) % 256).join('.');
      const set = new IpRangeSet([`${network}/${prefix}`]);
      assert.ok(set.contains(base));
      assert.equal(set.contains(other), Math.floor(number(other) / size) * size === start);
      assert.equal(set.contains(`::ffff:${other}`), set.contains(other));
    }),
  );
});

test('IpRangeSet contains addresses with a zone, contains no text that is not an address, and rejects texts that are not ranges', () => {
  const set = new IpRangeSet(['0.0.0.0/0', '::/0']);
  assert.equal(set.contains('example.org'), false);
  assert.equal(set.contains('fe80::1%eth0'), true);
  assert.throws(() => new IpRangeSet(['10.0.0.1/33']), RangeError);
});
