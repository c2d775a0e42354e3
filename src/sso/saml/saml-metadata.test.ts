import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { entity } from '../test/metadata-documents.ts';
import { readMetadata } from './saml-metadata.ts';

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
