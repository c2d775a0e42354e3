import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { LoginSessions } from './login-sessions.ts';

describe('LoginSessions', () => {
  it('bounds the pending logins of one IPv6 network, without effect on the logins of another network', () => {
    const clock = manualClock();
    const logins = new LoginSessions({ caches: plainCaches(clock), clock, randomness: systemRandomness });
    const login = { provider: 'oidc', kind: 'client', data: {}, secrets: {} };
    logins.add('other', { browser: 'b', ip: '2001:db8:0:2::1' }, login);
    for (let i = 0; i <= 50; i++) logins.add(`${i}`, { browser: 'b', ip: `2001:db8:0:1:${i}::1` }, login);
    assert.equal(logins.find('0', 'b'), undefined);
    assert.deepEqual([logins.find('1', 'b'), logins.find('other', 'b')], [login, login]);
  });
});
