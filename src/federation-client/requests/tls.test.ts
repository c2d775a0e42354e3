import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { TlsOptions } from 'node:tls';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { Overrides } from '../../../test/support/inputs/section-defaults.ts';
import { makeTestAuthority } from '../../../test/support/network/test-authority.ts';
import type { FederationClientConfig } from '../config.ts';
import { get, json, type Listener, RequestsUnderTest } from './test/requests-under-test.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('FederationClient over TLS', () => {
    let test: RequestsUnderTest;
    before(() => {
      test = new RequestsUnderTest();
    });
    after(() => test.authority.remove());
    afterEach(() => test.close());
    const serve = (listener: Listener, tls: TlsOptions = {}) => test.serve(listener, tls);
    const client = (options: Overrides<FederationClientConfig> = {}) => test.client(open, options);
    const respond: Listener = (_request, response) => json(response, 200, {});
    const getOnce = (destination: string) => ({ ...get(destination), retry: 'none' }) as const;
    const tlsFailure = (error: Error) => (error.cause as { failure?: string }).failure === 'tls';

    it('trusts the configured certificate authorities only [option: federation_custom_ca_list]', async () => {
      const server = await serve(respond);
      const { requests } = await client();
      assert.deepEqual(await requests.request(getOnce(server.name)), {});
      const strict = await client({ federation_custom_ca_list: [] });
      await assert.rejects(strict.requests.request(getOnce(server.name)), tlsFailure);
    });

    it('requires a certificate for the requested name or address [option: federation_verify_certificates]', async () => {
      const server = await serve(respond, test.authority.issue('b.example'));
      const { requests } = await client();
      await assert.rejects(requests.request(getOnce(server.name)), tlsFailure);
      await assert.rejects(requests.request(getOnce(`127.0.0.1:${server.port}`)), tlsFailure);
      const careless = await client({ federation_verify_certificates: false });
      assert.deepEqual(await careless.requests.request(getOnce(server.name)), {});
      const address = await serve(respond, test.authority.issue('127.0.0.1'));
      assert.deepEqual(await requests.request(getOnce(`127.0.0.1:${address.port}`)), {});
    });

    it('does not verify the certificates of exempt hosts [option: federation_certificate_verification_whitelist]', async () => {
      const server = await serve(respond, issueByUnknownAuthority());
      const requestWith = async (pattern: string) => {
        const { requests } = await client({ federation_certificate_verification_whitelist: [pattern] });
        return requests.request(getOnce(server.name));
      };
      for (const pattern of ['a.example', '*.example', 'A.Example'])
        assert.deepEqual(await requestWith(pattern), {});
      for (const pattern of ['example', '*.a.example', 'b.example'])
        await assert.rejects(requestWith(pattern), tlsFailure);
    });

    it('rejects servers whose TLS version is older than the configured minimum [option: federation_client_minimum_tls_version]', async () => {
      const server = await serve(respond, { maxVersion: 'TLSv1.2' });
      for (const version of ['1', '1.1', '1.2'] as const) {
        const { requests } = await client({ federation_client_minimum_tls_version: version });
        assert.deepEqual(await requests.request(getOnce(server.name)), {}, version);
      }
      const { requests } = await client({ federation_client_minimum_tls_version: '1.3' });
      await assert.rejects(requests.request(getOnce(server.name)), tlsFailure);
    });

    it('sends the expected host name as SNI, and no SNI for an address', async () => {
      const names: unknown[] = [];
      const server = await serve(
        (request, response) => {
          names.push((request.socket as unknown as { servername: unknown }).servername);
          json(response, 200, {});
        },
        test.authority.issue('a.example', '127.0.0.1'),
      );
      const { requests } = await client();
      await requests.request(getOnce(server.name));
      await requests.request(getOnce(`127.0.0.1:${server.port}`));
      assert.deepEqual(names, ['a.example', false]);
    });
  });
});

/** Returns a certificate of an authority that the requesting server does not trust. */
function issueByUnknownAuthority() {
  const stranger = makeTestAuthority();
  try {
    return stranger.issue('a.example');
  } finally {
    stranger.remove();
  }
}
