import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundedProfile } from './bounded-profile.ts';
import { SamlUserMapping } from './saml/saml-user.ts';
import { ssoOptions } from './test/sso-server.ts';

describe('boundedProfile', () => {
  it('shortens a name to 255 code units without cutting a surrogate pair, and replaces lone surrogates', () => {
    const nameOf = (name: string) => boundedProfile(name).displayName;
    assert.equal(nameOf(`${'x'.repeat(254)}\u{1f600}`), 'x'.repeat(254));
    assert.equal(nameOf(`${'x'.repeat(253)}\u{1f600}y`), `${'x'.repeat(253)}\u{1f600}`);
    assert.equal(nameOf('\ud83d Zoe'), '\ufffd Zoe');
    assert.equal(boundedProfile(undefined).displayName, undefined);
  });

  it('bounds the display name of a SAML user, and the number and the length of the addresses', async () => {
    const { saml2_config: options } = ssoOptions({ saml2_config: { sp_config: {} } });
    const email = [`${'x'.repeat(250)}@x.example`, ...Array.from({ length: 60 }, (_, i) => `${i}@x.example`)];
    const attributes = { uid: 'zoe', displayName: `${'x'.repeat(254)}\u{1f600}`, email };
    const profile = { issuer: 'https://one.example', attributes } as never;
    const user = await new SamlUserMapping(options!, undefined).user(profile, false);
    assert.deepEqual([user.displayName, user.emails], ['x'.repeat(254), email.slice(1, 51)]);
  });
});
