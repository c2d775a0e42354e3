import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { addressKey, RateLimiter } from './index.ts';

describe('addressKey', () => {
  it('counts IPv6 addresses by their first 64 bits, and IPv4-mapped addresses as IPv4 addresses', () => {
    const keys: Record<string, string> = {
      '2001:db8:1:2::1': '2001:db8:1:2::/64',
      '2001:0DB8:1:2:aaaa:bbbb:cccc:dddd': '2001:db8:1:2::/64',
      '2001:db8::192.0.2.1': '2001:db8::/64',
      '::1': '::/64',
      'fe80::1%eth0': 'fe80::/64',
      '::ffff:192.0.2.1': '192.0.2.1',
      '::ffff:c000:201': '192.0.2.1',
    };
    for (const [address, key] of Object.entries(keys)) assert.equal(addressKey(address), key, address);
  });

  it('leaves IPv4 addresses, user ids and other keys unchanged', () => {
    for (const key of ['192.0.2.1', '@dead:beef', '@a:[2001:db8::1]', '', 'dead:beef', '!room:test']) {
      assert.equal(addressKey(key), key);
    }
  });
});

describe('RateLimiter for client addresses', () => {
  it('limits all addresses of one IPv6 network together, in take, tryTake and check', () => {
    const limiter = new RateLimiter({ per_second: 0.1, burst_count: 2 }, manualClock());
    limiter.take('2001:db8:0:1::1');
    limiter.check('2001:db8:0:1::2');
    limiter.take('2001:db8:0:1::2');
    const limited = { errcode: 'M_LIMIT_EXCEEDED' };
    assert.throws(() => limiter.check('2001:db8:0:1::3'), limited);
    assert.throws(() => limiter.take('2001:db8:0:1:ffff::3'), limited);
    assert.ok(limiter.tryTake('2001:db8:0:1::4') > 0);
    limiter.take('2001:db8:0:2::1', 2);
    assert.equal(limiter.size, 2);
  });
});
