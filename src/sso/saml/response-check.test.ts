import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../kernel/clock.ts';
import { type ResponseOptions, rsaCertificate, SamlIdp } from '../test/saml-idp.ts';
import { publicUrl } from '../test/sso-server.ts';
import { decoded, ResponseCheck } from './response-check.ts';
import { readMetadata } from './saml-metadata.ts';
import { ServiceProvider } from './service-provider.ts';

const idp = new SamlIdp('https://one.client.example');
const stranger = new SamlIdp('https://one.client.example', rsaCertificate('second'));
const service = rsaCertificate('third');
const [provider] = readMetadata(idp.metadata);

const genuine = '<saml:AttributeValue>alice</saml:AttributeValue>';
const forged = '<saml:AttributeValue>root</saml:AttributeValue>';
const assertionPattern = /<saml:Assertion.*<\/saml:Assertion>/s;
const signaturePattern = /<(ds:)?Signature.*?<\/(ds:)?Signature>/s;
const assertionIn = (xml: string) => assertionPattern.exec(xml)![0];
const signatureIn = (xml: string) => signaturePattern.exec(xml)![0];
const withoutSignatures = (xml: string) => xml.replace(new RegExp(signaturePattern, 'gs'), '');
const withNewId = (xml: string) => xml.replace(/ID="_[^"]+"/, 'ID="_evil"');

/** Returns the assertion without its signature, about another user. */
const forgedAssertion = (xml: string) =>
  withNewId(withoutSignatures(assertionIn(xml)).replace(genuine, forged));

/** Returns the whole response without its signature, about another user. */
const forgedResponse = (xml: string) => withNewId(withoutSignatures(xml).replace(genuine, forged));

const inExtensions = (xml: string, extension: string) =>
  xml.replace('<samlp:Status>', `<samlp:Extensions>${extension}</samlp:Extensions><samlp:Status>`);

/** Functions that change a signed response into a forged one, by name. */
const forgeries: Readonly<Record<string, (xml: string) => string>> = {
  'a changed attribute': (xml) => xml.replace(genuine, forged),
  'a forged assertion before the genuine one': (xml) =>
    xml.replace('<saml:Assertion', `${forgedAssertion(xml)}<saml:Assertion`),
  'a forged assertion after the genuine one': (xml) =>
    xml.replace('</samlp:Response>', `${forgedAssertion(xml)}</samlp:Response>`),
  'the genuine assertion inside of the forged one': (xml) =>
    xml.replace(
      assertionPattern,
      forgedAssertion(xml).replace('</saml:Subject>', `</saml:Subject>${assertionIn(xml)}`),
    ),
  'the genuine assertion in an extension': (xml) =>
    inExtensions(xml.replace(assertionPattern, forgedAssertion(xml)), assertionIn(xml)),
  'the genuine response in an extension of the forged one': (xml) => inExtensions(forgedResponse(xml), xml),
  'the genuine response in an extension, its signature in the forged one': (xml) =>
    inExtensions(forgedResponse(xml), withoutSignatures(xml)).replace(
      '<samlp:Extensions>',
      `${signatureIn(xml)}<samlp:Extensions>`,
    ),
  'the genuine response inside of its signature, in the forged one': (xml) =>
    forgedResponse(xml).replace(
      '<samlp:Status>',
      `${signatureIn(xml).replace(
        /<\/((ds:)?Signature)>$/,
        `<Object xmlns="http://www.w3.org/2000/09/xmldsig#">${withoutSignatures(xml)}</Object></$1>`,
      )}<samlp:Status>`,
    ),
  'the genuine response inside of the forged assertion': (xml) =>
    forgedResponse(xml).replace('</saml:Subject>', `</saml:Subject>${xml}`),
  'the id of the genuine response on the forged one': (xml) =>
    inExtensions(withoutSignatures(xml).replace(genuine, forged), xml),
  'a signature of the genuine response in the forged assertion': (xml) =>
    withoutSignatures(xml)
      .replace(genuine, forged)
      .replace('<saml:Subject>', `${signatureIn(xml)}<saml:Subject>`),
  'the genuine signature both in the forged response and in the forged assertion': (xml) =>
    withoutSignatures(xml)
      .replace(genuine, forged)
      .replace('<samlp:Status>', `${signatureIn(xml)}<samlp:Status>`)
      .replace('<saml:Subject>', `${signatureIn(xml)}<saml:Subject>`),
  'no signature': withoutSignatures,
  'a document type': (xml) => `<!DOCTYPE r [<!ENTITY x "root">]>${xml}`,
  'external entities': (xml) => `<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x">${xml}`,
};

describe('ResponseCheck', () => {
  const usedIds = new Set<string>();
  const used = { use: async ({ id }: { readonly id: string }) => usedIds.size < usedIds.add(id).size };
  const checkOf = (more: object = {}) => {
    const config = {
      local: [],
      remote: [],
      acceptedTimeDiff: 0,
      allowUnsolicited: false,
      requiresSignedAssertions: false,
      requiresSignedResponses: false,
      entityId: undefined,
      privateKey: service.key,
      certificate: service.cert,
      ...more,
    };
    return new ResponseCheck(new ServiceProvider(config, `${publicUrl}/`), systemClock, used);
  };
  const xmlOf = (options: Partial<ResponseOptions>) =>
    idp.xml({ attributes: { uid: ['alice'] }, inResponseTo: '_request', ...options });
  /** Returns the `uid` of a response. */
  const verify = async (xml: string, check = checkOf()) => {
    const profile = await check.verify(provider!, Buffer.from(xml).toString('base64'));
    return (profile['attributes'] as Record<string, unknown>)['uid'];
  };
  const uidOf = async (options: Partial<ResponseOptions>, check = checkOf()) =>
    verify(await xmlOf(options), check);
  const refused = { code: 'invalid_response' };

  it('accepts a SAML response when the assertion, the response or both are signed, also when the assertion is encrypted', async () => {
    for (const signs of ['assertion', 'response', 'both'] as const) {
      assert.equal(await uidOf({ signs }), 'alice', signs);
      assert.equal(await uidOf({ signs, encryptFor: service }), 'alice', `${signs}, encrypted`);
    }
    await assert.rejects(uidOf({ signs: 'nothing' }), refused);
    await assert.rejects(
      uidOf({ signs: 'nothing', encryptFor: service }),
      refused,
      'encryption proves nothing',
    );
  });

  it('refuses forged SAML responses, whether the assertion, the response or both are signed', async () => {
    for (const signs of ['assertion', 'response', 'both'] as const) {
      const genuine = await xmlOf({ signs });
      for (const [name, change] of Object.entries(forgeries)) {
        const xml = change(genuine);
        assert.notEqual(xml, genuine, name);
        await assert.rejects(verify(xml), refused, `${name}, signs ${signs}`);
      }
      assert.equal(await verify(genuine), 'alice');
    }
  });

  it('refuses a SAML response whose own signature is invalid, although the signature of the assertion is valid', async () => {
    const change = (xml: string) => xml.replace('<samlp:Status>', '<samlp:Status ID="changed">');
    await assert.rejects(verify(change(await xmlOf({ signs: 'both' }))), refused);
    assert.equal(await verify(change(await xmlOf({ signs: 'assertion' }))), 'alice');
  });

  it('refuses expired SAML responses, and SAML responses with another key, issuer, audience, recipient, destination or status', async () => {
    const changes: readonly Partial<ResponseOptions>[] = [
      { signedBy: stranger.certificate },
      { issuer: 'https://elsewhere' },
      { audience: 'https://elsewhere' },
      { recipient: 'https://elsewhere' },
      { destination: 'https://elsewhere' },
      { status: 'Responder' },
      { validFor: -1000 },
    ];
    for (const signs of ['assertion', 'response'] as const) {
      for (const change of changes) {
        await assert.rejects(uidOf({ signs, ...change }), refused, JSON.stringify([signs, change]));
      }
    }
  });

  it('refuses SAML responses with more than 10,000 tags or 20,000 attributes before their XML is parsed', () => {
    const accepts = (xml: string) => assert.equal(decoded(Buffer.from(xml).toString('base64')), xml);
    const refuses = (xml: string) =>
      assert.throws(() => decoded(Buffer.from(xml).toString('base64')), /too many elements or attributes/);
    accepts('<b/>'.repeat(10_000));
    refuses('<b/>'.repeat(10_001));
    accepts(`<b${' c=""'.repeat(20_000)}/>`);
    refuses(`<b${' c=""'.repeat(20_001)}/>`);
  });

  it('refuses the same signed SAML response a second time', async () => {
    const xml = await xmlOf({ signs: 'response' });
    await verify(xml);
    await assert.rejects(verify(xml), refused);
  });

  it('requires signed assertions with want_assertions_signed, and signed responses with want_response_signed', async () => {
    const assertions = checkOf({ requiresSignedAssertions: true });
    const responses = checkOf({ requiresSignedResponses: true });
    await assert.rejects(uidOf({ signs: 'response' }, assertions), refused);
    await assert.rejects(uidOf({ signs: 'assertion' }, responses), refused);
    for (const check of [assertions, responses]) {
      assert.equal(await uidOf({ signs: 'both' }, check), 'alice');
    }
  });
});
