import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PasswordHasher } from './password-hasher.ts';

describe('PasswordHasher', () => {
  const hasher = new PasswordHasher(4, 'pepper');

  it('makes hashes that match only their password', async () => {
    const hash = await hasher.hash('secret');
    assert.match(hash, /^\$2[aby]\$04\$/);
    assert.equal(await hasher.verify('secret', hash), true);
    for (const guess of ['', 'Secret', 'secret ', 'secret\0'])
      assert.equal(await hasher.verify(guess, hash), false);
  });

  it('makes hashes that match only with the same pepper [option: password_config.pepper]', async () => {
    const hash = await hasher.hash('secret');
    assert.equal(await new PasswordHasher(4, 'salt').verify('secret', hash), false);
    assert.equal(await new PasswordHasher(4, null).verify('secret', hash), false);
    assert.equal(await new PasswordHasher(5, 'pepper').verify('secret', hash), true);
  });

  it('takes as long to verify a password without a stored hash as with one, and never matches', async () => {
    const slow = new PasswordHasher(9, null);
    const hash = await slow.hash('secret');
    assert.equal(await slow.verify('', undefined), false);
    const time = async (given: string | undefined) => {
      const before = process.cpuUsage();
      await slow.verify('guess', given);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    // Other work of this process can only make a measurement longer, so the shortest counts.
    let [known, unknown] = [Infinity, Infinity];
    for (let times = 0; times < 10; times++) {
      known = Math.min(known, await time(hash));
      unknown = Math.min(unknown, await time(undefined));
    }
    assert.ok(unknown > known / 3, `${unknown} ms without a hash, ${known} ms with one`);
  });
});
