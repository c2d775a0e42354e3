import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hash as bcrypt } from '@node-rs/bcrypt';
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

  it('accepts the bcrypt hashes of other servers in the versions 2a, 2b and 2y, with the pepper', async () => {
    const bytes = (text: string) => Buffer.from(text.normalize('NFKC'));
    for (const version of ['2a', '2b', '2y']) {
      const imported = (await bcrypt(bytes('sécretpepper'), { cost: 4 })).replace(/^\$2[aby]/, `$${version}`);
      assert.equal(await hasher.verify('sécret', imported), true, version);
      for (const guess of ['', 'secret', 'sécretpepper', 'sécret\0'])
        assert.equal(await hasher.verify(guess, imported), false, guess);
      assert.equal(await new PasswordHasher(4, null).verify('sécret', imported), false);
      assert.equal(hasher.isOutdated(imported), true);
    }
    const long = 'x'.repeat(80);
    const hashOfLong = await bcrypt(bytes(long).subarray(0, 72), { cost: 4 });
    assert.equal(await hasher.verify(long, hashOfLong), true);
    const beginning = await bcrypt(bytes('secret'), { cost: 4 });
    assert.equal(await new PasswordHasher(4, null).verify('secret\0more', beginning), false);
    // A hash of the password U*U that another implementation of bcrypt made.
    const known = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW';
    assert.equal(await new PasswordHasher(4, null).verify('U*U', known), true);
  });

  it('accepts hashes of earlier versions of this server, which lack the suffix $hmac-sha256', async () => {
    const hash = (await hasher.hash('secret')).replace('$hmac-sha256', '');
    assert.deepEqual(
      [await hasher.verify('secret', hash), await hasher.verify('guess', hash)],
      [true, false],
    );
    assert.equal(hasher.isOutdated(hash), true);
  });

  it('reports hashes with fewer rounds than the option bcrypt_rounds as outdated', async () => {
    const hash = await hasher.hash('secret');
    assert.equal(hasher.isOutdated(hash), false);
    assert.equal(new PasswordHasher(5, 'pepper').isOutdated(hash), true);
    assert.equal(
      new PasswordHasher(4, 'pepper').isOutdated(await new PasswordHasher(5, 'pepper').hash('a')),
      false,
    );
  });

  it('takes at least a third as long to verify a password without a stored hash as with one, and never matches', async () => {
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
