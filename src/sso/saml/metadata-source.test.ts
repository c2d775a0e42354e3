import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { systemClock } from '../../kernel/clock.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { SamlMetadataSource } from './metadata-source.ts';
import { readMetadataOffThread } from './read-metadata.ts';
import { readMetadata } from './saml-metadata.ts';

const entity = (name: string) =>
  `<EntityDescriptor entityID="${name}"><IDPSSODescriptor><KeyDescriptor><KeyInfo><X509Data><X509Certificate>AAAA</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://${name}/sso"/></IDPSSODescriptor></EntityDescriptor>`;
const federation = `<EntitiesDescriptor>${Array.from({ length: 400 }, (_, i) => entity(`idp${i}`)).join('')}</EntitiesDescriptor>`;

describe('readMetadataOffThread', () => {
  it('parses long metadata documents on another thread with the same result, and rejects invalid ones', async () => {
    const providers = await readMetadataOffThread(federation, systemClock);
    assert.equal(providers.length, 400);
    assert.deepEqual(providers, readMetadata(federation));
    await assert.rejects(readMetadataOffThread(`<!DOCTYPE x>${federation}`, systemClock), /document type/);
    await assert.rejects(readMetadataOffThread(`<x>${federation}`, systemClock), /invalid XML/);
    assert.equal((await readMetadataOffThread(federation, systemClock)).length, 400, 'after a failure');
  });
});

describe('readMetadataOffThread of a document that takes too long', () => {
  it('ends a thread that reads a metadata document for a minute, and reads the next document', async () => {
    const clock = manualClock();
    const reading = readMetadataOffThread(federation, clock);
    clock.advance(60_000);
    await assert.rejects(reading, /not read in 60 s/);
    assert.equal((await readMetadataOffThread(federation, clock)).length, 400);
  });
});

describe('readMetadata', () => {
  it('returns the English name of an identity provider, or else its first name', () => {
    const name = (lang: string, text: string) => `<DisplayName xml:lang="${lang}">${text}</DisplayName>`;
    const nameFrom = (names: string) =>
      readMetadata(
        entity('idp').replace(
          '<KeyDescriptor>',
          `<Extensions><UIInfo>${names}</UIInfo></Extensions><KeyDescriptor>`,
        ),
      )[0]?.name;
    assert.equal(nameFrom(name('de', 'Hochschule') + name('en', 'College')), 'College');
    assert.equal(nameFrom(name('de', 'Hochschule')), 'Hochschule');
    assert.equal(nameFrom(''), 'idp');
  });
});

describe('SamlMetadataSource', () => {
  it('fetches metadata once for concurrent logins, and uses cached metadata for up to a day while it cannot be fetched', async () => {
    const clock = manualClock();
    let fetched = 0;
    let status = 200;
    const fetch = async (url: URL) => {
      fetched += 1;
      return { status, headers: {}, body: Buffer.from(entity('idp')), url };
    };
    const requests = { http: { fetch }, guardedHttp: { fetch } };
    const sp = { local: [], remote: ['https://idp.example/metadata'] };
    const source = new SamlMetadataSource({ ...requests, clock, log: silentLogger }, sp, null);
    await Promise.all([source.providers(), source.providers()]);
    assert.equal(fetched, 1);
    status = 500;
    clock.advance(3_600_000);
    for (let i = 0; i < 3; i++) assert.equal((await source.providers()).list[0]?.entityId, 'idp');
    assert.equal(fetched, 2, 'a failure is followed by a pause');
    clock.advance(24 * 3_600_000);
    for (let i = 0; i < 3; i++) await assert.rejects(source.providers(), /responded 500/);
    assert.equal(fetched, 3, 'also where no metadata is left');
    status = 200;
    clock.advance(5_000);
    assert.equal((await source.providers()).list.length, 1);
  });
});
