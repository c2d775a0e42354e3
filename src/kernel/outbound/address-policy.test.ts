import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AddressPolicy } from './address-policy.ts';
import { privateRanges } from './config.ts';

const policy = (allowed: readonly string[] = []) =>
  new AddressPolicy({ refused: [...privateRanges], allowed });

describe('AddressPolicy', () => {
  it('refuses private and reserved addresses [option: ip_range_blacklist]', () => {
    const inside = [
      '127.0.0.1',
      '10.1.2.3',
      '169.254.169.254',
      '192.168.0.1',
      '::1',
      'fe80::1%eth0',
      'fc00::1',
    ];
    for (const address of inside) assert.equal(policy().allows(address), false, address);
    for (const address of ['93.184.216.34', '2606:2800:220:1::1'])
      assert.equal(policy().allows(address), true);
    const refusesNone = new AddressPolicy({ refused: [], allowed: [] });
    for (const address of inside) assert.equal(refusesNone.allows(address), true, address);
  });

  it('checks the IPv4 addresses embedded in IPv6 addresses', () => {
    const embedded = ['::ffff:127.0.0.1', '::ffff:7f00:1', '64:ff9b::a00:1', '2002:7f00:1::1', '::127.0.0.1'];
    for (const address of embedded) assert.equal(policy().allows(address), false, address);
    for (const address of ['::ffff:93.184.216.34', '64:ff9b::5db8:d822', '2002:5db8:d822::1']) {
      assert.equal(policy().allows(address), true, address);
    }
  });

  it('allows exceptions from refused ranges [option: ip_range_whitelist]', () => {
    const withExceptions = policy(['10.1.0.0/16', '::1']);
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::1'])
      assert.equal(withExceptions.allows(address), true, address);
    assert.equal(withExceptions.allows('10.2.0.1'), false);
  });

  it('never allows the unspecified address', () => {
    const everything = new AddressPolicy({ refused: [], allowed: ['0.0.0.0/0', '::/0'] });
    for (const address of ['0.0.0.0', '::', '::ffff:0.0.0.0', '64:ff9b::', '0:0:0:0:0:0:0:0']) {
      assert.equal(everything.allows(address), false, address);
    }
    assert.equal(everything.allows('127.0.0.1'), true);
  });
});
