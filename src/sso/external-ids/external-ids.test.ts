import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { ssoMigrations } from '../migrations.ts';
import { ExternalIds } from './external-ids.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('ExternalIds', () => {
    it('renames an external id only for the identity provider that has authenticated its user', async () => {
      const ids = new ExternalIds(await open(ssoMigrations));
      const issuer = 'https://one.example';
      const otherIssuer = 'https://two.example';
      const id = { provider: 'saml', externalId: 'zoe' };
      assert.equal(await ids.link('@zoe:test', { ...id, issuer }), true);
      assert.equal(await ids.rename({ ...id, issuer: otherIssuer }, `${otherIssuer} zoe`), undefined);
      assert.equal(await ids.rename({ ...id, issuer }, `${issuer} zoe`), '@zoe:test');
      assert.equal(await ids.find('saml', 'zoe'), undefined);
      assert.deepEqual(await ids.findAccount('saml', `${issuer} zoe`), { userId: '@zoe:test', issuer });
    });

    it('replace() keeps the identity provider of ids that do not change, and stores new ids without an identity provider', async () => {
      const ids = new ExternalIds(await open(ssoMigrations));
      const kept = { provider: 'saml', externalId: 'kept' };
      const added = { provider: 'saml', externalId: 'added' };
      await ids.replace('@ben:test', [kept, { provider: 'saml', externalId: 'gone' }]);
      await ids.setIssuer(kept, 'https://one.example');
      await ids.replace('@ben:test', [added, kept]);
      assert.deepEqual(await ids.list('@ben:test'), [added, kept]);
      assert.equal((await ids.findAccount('saml', 'kept'))?.issuer, 'https://one.example');
      assert.equal((await ids.findAccount('saml', 'added'))?.issuer, undefined);
      assert.equal(await ids.find('saml', 'gone'), undefined);
    });
  });
});
