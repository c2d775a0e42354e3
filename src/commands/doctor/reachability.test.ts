import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { makeTestAuthority } from '../../../test/support/network/test-authority.ts';
import { assertFound, doctorSubject } from './test/doctor-subject.ts';

const day = 24 * 60 * 60 * 1_000;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`hearth doctor on ${database}`, () => {
    const subject = doctorSubject(database);
    const { authority, findings } = subject;

    describe('reachability by other servers and clients', () => {
      it('reports missing DNS records, private addresses, and an SRV record that offers no federation', async (context) => {
        const { hosts, srv } = subject.network.resolver;
        context.after(() => {
          hosts.set('matrix.example.org', ['198.41.0.4']).set('example.org', ['198.41.0.4']);
          srv.clear();
          subject.network.answers.clear();
        });
        hosts.delete('matrix.example.org');
        assertFound(await findings(), 'dns', 'error', /matrix\.example\.org has no address/, /A and AAAA/);
        const { resolver } = subject.network;
        const noAnswer = Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' });
        resolver.addresses = () => Promise.reject(noAnswer);
        assertFound(await findings(), 'dns-servers', 'error', /No DNS server has answered/, /resolv\.conf/);
        Reflect.deleteProperty(resolver, 'addresses');
        hosts.set('matrix.example.org', ['127.0.0.1']);
        assertFound(
          await findings(),
          'dns-private',
          'warning',
          /matrix\.example\.org resolves to 127\.0\.0\.1/,
          /dig @9\.9\.9\.9/,
        );
        hosts.set('matrix.example.org', ['198.41.0.4']);
        subject.network.answers.set('/.well-known/matrix/server', { status: 404 });
        srv.set('_matrix-fed._tcp.example.org', [{ name: '.', port: 0, priority: 0, weight: 0 }]);
        const options = { serve_server_wellknown: false };
        assertFound(
          await findings({ options }),
          'dns-srv',
          'error',
          /offers no federation/,
          /_matrix-fed\._tcp\.example\.org/,
        );
        srv.set('_matrix-fed._tcp.example.org', [
          { name: 'matrix.example.org', port: 443, priority: 0, weight: 0 },
        ]);
        assertFound(await findings({ options }), 'federation-address', 'ok', /matrix\.example\.org:443/);
      });

      it('reports /.well-known documents that are missing or invalid, name another server or lack the CORS header', async (context) => {
        context.after(() => subject.network.answers.clear());
        const [forServers, forClients] = ['/.well-known/matrix/server', '/.well-known/matrix/client'];
        subject.network.answers.set(forServers, { body: 'hello' });
        assertFound(
          await findings(),
          'well-known-server',
          'error',
          /no valid m\.server/,
          /"m\.server": "example\.org:443"/,
        );
        subject.network.answers.set(forServers, { status: 404 });
        assertFound(
          await findings(),
          'well-known-server',
          'error',
          /serve_server_wellknown is on.*status 404/,
          /location \/\.well-known\/matrix/,
        );
        subject.network.answers.clear();
        subject.network.answers.set(forClients, { status: 404 });
        assertFound(
          await findings(),
          'well-known-client',
          'error',
          /status 404/,
          /"base_url": "https:\/\/matrix\.example\.org\/"/,
        );
        const body = (url: string) => JSON.stringify({ 'm.homeserver': { base_url: url } });
        subject.network.answers.set(forClients, { body: body('https://old.example.org') });
        assertFound(
          await findings(),
          'well-known-client',
          'error',
          /leads clients to https:\/\/old\.example\.org\//,
          /public_baseurl: https:\/\/old/,
        );
        subject.network.answers.set(forClients, { body: body('https://matrix.example.org') });
        assertFound(
          await findings(),
          'well-known-cors',
          'error',
          /Access-Control-Allow-Origin/,
          /add_header/,
        );
        const sameHost = { options: { public_baseurl: 'https://example.org/' } };
        subject.network.answers.set(forClients, { status: 404 });
        assertFound(await findings(sameHost), 'well-known-client', 'note', /which is the right server/);
      });

      it('reports a certificate for another name, one whose intermediate certificate is missing, a self-signed one, and ports that do not answer', async (context) => {
        const unknown = makeTestAuthority();
        context.after(() => {
          subject.network.present('matrix.example.org', undefined);
          subject.network.closed.clear();
          unknown.remove();
        });
        subject.network.present('matrix.example.org', authority.issue('other.example'));
        assertFound(
          await findings(),
          'certificate-name',
          'error',
          /^matrix\.example\.org:443: .* other\.example/,
          /certbot/,
        );
        subject.network.present('matrix.example.org', unknown.issue('matrix.example.org'));
        assertFound(
          await findings(),
          'certificate-chain',
          'error',
          /UNABLE_TO_VERIFY_LEAF_SIGNATURE/,
          /fullchain\.pem/,
        );
        subject.network.present('matrix.example.org', unknown.selfSigned('matrix.example.org'));
        assertFound(
          await findings(),
          'certificate-untrusted',
          'error',
          /SELF_SIGNED/,
          /recognised authority/,
        );
        subject.network.present('matrix.example.org', undefined);
        for (const place of ['example.org:443', 'example.org:8448', 'matrix.example.org:443'])
          subject.network.closed.add(place);
        const closed = await findings();
        assertFound(
          closed,
          'federation-unreachable',
          'error',
          /^example\.org:8448 does not answer/,
          /open port 8448/,
        );
        assertFound(
          closed,
          'clients-unreachable',
          'error',
          /matrix\.example\.org:443 does not answer/,
          /open port 443/,
        );
      });

      it('reports a reverse proxy that does not forward requests, changes paths, or forwards to another server', async (context) => {
        context.after(() => {
          subject.network.answers.clear();
          subject.network.passedPath = (path) => path;
        });
        const [version, keys] = ['/_matrix/federation/v1/version', '/_matrix/key/v2/server'];
        subject.network.answers.set(version, { status: 404 });
        assertFound(await findings(), 'federation-unreachable', 'error', /status 404/, /location \/_matrix/);
        subject.network.answers.set(version, { status: 502 });
        assertFound(await findings(), 'federation-unreachable', 'error', /status 502/, /proxy_pass/);
        subject.network.answers.delete(version);
        subject.network.answers.set(keys, { status: 404 });
        assertFound(await findings(), 'federation-keys', 'error', /status 404/, /location \/_matrix\/key/);
        const published = (more: object) => ({
          body: JSON.stringify({
            server_name: 'example.org',
            verify_keys: {},
            valid_until_ts: Date.now() + day,
            ...more,
          }),
        });
        subject.network.answers.set(keys, published({ server_name: 'other.example' }));
        assertFound(
          await findings(),
          'federation-other-server',
          'error',
          /The server other\.example answers/,
        );
        subject.network.answers.set(keys, published({ valid_until_ts: 1 }));
        const stale = await findings();
        assertFound(stale, 'federation-other-key', 'error', /does not publish the key ed25519:/, /restart/);
        assertFound(stale, 'federation-keys-expired', 'error', /not valid any more/, /cache/);
        subject.network.answers.clear();
        subject.network.passedPath = (path) => path.replaceAll('%2F', '/');
        assertFound(await findings(), 'federation-paths', 'error', /changes paths/, /proxy_pass/);
        subject.network.passedPath = (path) => path;
        subject.network.answers.set('/_matrix/client/versions', { status: 404 });
        assertFound(
          await findings(),
          'clients-unreachable',
          'error',
          /versions answers status 404/,
          /location \/_matrix/,
        );
        subject.network.answers.set('/_matrix/client/versions', { body: '{"versions":["v1.1"]}' });
        assertFound(
          await findings(),
          'clients-cors',
          'error',
          /Clients in browsers/,
          /must not change that header/,
        );
      });

      it('connects to each address of a host when there is no proxy, and reports an address that does not answer', async (context) => {
        context.after(() => subject.network.resolver.hosts.set('example.org', ['198.41.0.4']));
        const certificate = authority.issue('example.org');
        const direct = await serveOnLoopback((_request, response) => response.end(), certificate);
        context.after(() => direct.close());
        subject.network.resolver.hosts.set('example.org', ['127.0.0.1', '127.0.0.9']);
        const found = await findings({
          options: { https_proxy: null, public_baseurl: `https://example.org:${direct.port}/` },
        });
        assertFound(found, 'certificate', 'ok', /example\.org:\d+ \(127\.0\.0\.1\)/);
        assertFound(
          found,
          'clients-unreachable',
          'error',
          /example\.org:\d+ \(127\.0\.0\.9\) does not answer: .*ECONNREFUSED/,
          /ss -ltn/,
        );
      });

      it('reports that federation is off, that the server name is local, or that clients connect without TLS', async () => {
        assertFound(
          await findings({ options: { federation_domain_whitelist: [] } }),
          'federation-off',
          'note',
          /Federation is off/,
        );
        const local = await findings({ options: { server_name: 'localhost', public_baseurl: null } });
        assertFound(local, 'federation-local', 'note', /localhost/);
        assertFound(local, 'clients-local', 'note', /localhost/);
        const plain = await findings({ options: { public_baseurl: 'http://matrix.example.org/' } });
        assertFound(plain, 'clients-without-tls', 'warning', /in the clear/, /public_baseurl: https:/);
      });
    });
  });
}
