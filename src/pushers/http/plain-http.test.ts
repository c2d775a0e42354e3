import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeResolver } from '../../../test/support/network/loopback.ts';
import { privateRanges } from '../../kernel/outbound/index.ts';
import { plainHttpCheck } from './plain-http.ts';

const resolver = new FakeResolver();
resolver.hosts.set('gateway.lan', ['192.168.1.5']);
resolver.hosts.set('dual.lan', ['127.0.0.1', '::1']);

const allowed = async (ip_range_blacklist: readonly string[], ip_range_whitelist: readonly string[]) => {
  const check = plainHttpCheck(
    { ip_range_blacklist: [...ip_range_blacklist], ip_range_whitelist: [...ip_range_whitelist] },
    resolver,
  );
  const hosts = ['127.0.0.1', '::1', 'dual.lan', '192.168.1.5', 'gateway.lan', '93.184.215.14'];
  const answers = await Promise.all(hosts.map(check));
  return hosts.filter((_, index) => answers[index]);
};

describe('push gateways without TLS', () => {
  it('are refused everywhere while the blacklist has all private ranges', async () => {
    assert.deepEqual(await allowed(privateRanges, []), []);
  });

  it('are allowed at private addresses that the blacklist does not contain, and at names that lead to these', async () => {
    const others = privateRanges.filter((range) => range !== '192.168.0.0/16');
    assert.deepEqual(await allowed(others, []), ['192.168.1.5', 'gateway.lan']);
    const all = ['127.0.0.1', '::1', 'dual.lan', '192.168.1.5', 'gateway.lan'];
    assert.deepEqual(await allowed([], []), all);
  });

  it('are allowed at addresses in the whitelist, and at names whose other addresses are refused', async () => {
    assert.deepEqual(await allowed(privateRanges, ['127.0.0.1']), ['127.0.0.1', 'dual.lan']);
    assert.deepEqual(await allowed(privateRanges, ['93.184.215.0/24']), ['93.184.215.14']);
  });
});
