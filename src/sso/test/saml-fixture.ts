import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { rsaCertificate, SamlIdp } from './saml-idp.ts';
import type { SsoServer } from './sso-server.ts';
import type { TestBrowser } from './test-browser.ts';

/** The section `sso` of a configuration that trusts the client of the tests. */
export const trustedClient = { client_whitelist: ['https://app.client.example/'] };

/**
 * Creates two identity providers and the files that configurations of SAML name. Must be called at the top of a test
 * file, so that the files are removed after the tests of this file.
 */
export function createSamlFixture() {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-saml-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  /** Writes a file. @returns its path */
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const idp = new SamlIdp('https://one.client.example');
  const second = new SamlIdp('https://two.client.example', rsaCertificate('second'));
  /** The certificate of the homeserver. */
  const service = rsaCertificate('third');
  return {
    idp,
    second,
    service,
    file,
    /** Path of the metadata of the first provider. */
    localMetadata: file('one.xml', idp.metadata),
    /** The metadata of both providers. */
    federationMetadata: `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">${idp.metadata}${second.metadata}</md:EntitiesDescriptor>`,
    /** Begins a login. @returns the request at the first provider */
    async begin(hearth: SsoServer, browser: TestBrowser) {
      const { headers } = await browser.get(hearth.redirectUrl('saml'));
      return idp.read(headers.location ?? '');
    },
  };
}
