import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { freePort } from '../../../test/support/network/free-port.ts';
import { serveOnLoopback } from '../../../test/support/network/loopback.ts';
import { loadConfigurationFiles } from '../../configuration/load.ts';
import { checkConfigurationFiles } from './checks/configuration.ts';
import type { Finding } from './finding.ts';
import { jsonReport, textReport } from './report.ts';
import { assertFound, doctorSubject, problemsIn } from './test/doctor-subject.ts';
import { asOtherUser } from './test/other-user.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`hearth doctor on ${database}`, () => {
    const subject = doctorSubject(database);
    const { findings, sections, start, stop } = subject;

    describe('a server without problems', () => {
      it('reports each check as ok, and no problem', async () => {
        const found = await findings();
        assert.deepEqual(problemsIn(found), []);
        const names = [
          'configuration',
          'database',
          'database-schema',
          'database-lease',
          'server',
          'signing-key',
          'well-known-server',
          'federation-address',
          'dns',
          'certificate',
          'federation',
          'clients',
          'well-known-client',
          'clock',
          'disk-space',
          'memory',
          'open-files',
          'backup',
        ];
        for (const name of names) assertFound(found, name, 'ok', /./);
        const text = textReport(await sections(), false);
        assert.match(text, /\nClients\n {2}✓ matrix\.example\.org has the addresses/);
        assert.match(text, /\nNothing needs to be mended\.\n$/);
      });

      it('prints JSON for scripts, with the number of errors and warnings', async () => {
        const report = JSON.parse(jsonReport(await sections({ backupMark: undefined })));
        assert.deepEqual([report.errors, report.warnings], [0, 1]);
        const [missing] = report.findings.filter(({ level }: Finding) => level === 'warning');
        assert.equal(missing.section, 'Backups');
        assert.equal(missing.name, 'backup-none');
        assert.match(missing.fix, /^npm run hearth -- backup DIRECTORY -c .*homeserver\.yaml/);
      });
    });

    describe('checks of the configuration', () => {
      it('reports the errors of a configuration with file and line, and checks nothing else', async () => {
        const found = await findings({
          options: { listeners: [{ port: 'x', type: 'http', resources: [] }] },
        });
        assertFound(
          found,
          'configuration-error',
          'error',
          /homeserver\.yaml:\d+:\d+: listeners\[0\]\.port/,
          /explain 'listeners\[\]\.port'/,
        );
        assert.ok(found.every(({ name }) => name.startsWith('configuration')));
      });

      it('reports a missing configuration file, and a log_config that prevents the server from starting', async () => {
        const missing = ['/nowhere/homeserver.yaml'];
        const loaded = loadConfigurationFiles(missing, { environment: {} });
        assertFound(
          checkConfigurationFiles(missing, loaded),
          'configuration-error',
          'error',
          /does not exist/,
          /npm run hearth -- init/,
        );
        assertFound(
          await findings({ options: { log_config: '/nowhere/log.yaml' } }),
          'log-config',
          'error',
          /^The server does not start: log_config: \/nowhere\/log\.yaml: ENOENT/,
          /^ls -l \/nowhere\/log\.yaml/,
        );
      });

      it('reports warnings of the configuration, and a configuration file with secrets that other users of the machine can read', async () => {
        const found = await findings({ options: { redis: { enabled: true } }, mode: 0o644 });
        assertFound(
          found,
          'configuration-warning',
          'warning',
          /redis/,
          /change line \d+ of .*homeserver\.yaml/,
        );
        assertFound(
          found,
          'configuration-permissions',
          'warning',
          /contains secrets/,
          /^chmod o-rwx .*homeserver\.yaml$/,
        );
      });

      it('accepts a configuration file that other users of the machine can read if it contains paths of secrets but no secrets', async () => {
        const options = {
          macaroon_secret_key: undefined,
          macaroon_secret_key_path: subject.keyFile,
          registration_shared_secret: null,
          password_config: { enabled: true },
          database: undefined,
        };
        const found = await findings({ options, mode: 0o644 });
        assert.deepEqual(
          found.filter(({ name }) => name === 'configuration-permissions'),
          [],
        );
      });

      it('advises to run the command as the user of the server when the command cannot read a file of the configuration', () => {
        const path = join(subject.folder, 'private.yaml');
        writeFileSync(path, 'server_name: example.org\n', { mode: 0o000 });
        const loaded = asOtherUser(() => loadConfigurationFiles([path], { environment: {} }));
        const asUser = /^run this command as the user of the server/;
        const found = checkConfigurationFiles([path], loaded);
        assertFound(found, 'configuration-error', 'error', /permission is denied/, asUser);
      });
    });

    describe('checks of the running server', () => {
      it('reports another program at the port of the server, a server that has the database but does not answer, and a missing listener for clients', async (context) => {
        const other = await serveOnLoopback((_request, response) => response.end('hello'));
        context.after(() => other.close());
        const withPort = (port: number) => ({
          options: {
            listeners: [
              { port, type: 'http', bind_addresses: ['127.0.0.1'], resources: [{ names: ['client'] }] },
            ],
          },
        });
        assertFound(
          await findings(withPort(other.port)),
          'listener-foreign',
          'error',
          /A program that is not Hearth/,
          /ss -ltnp/,
        );
        const silent = await freePort();
        assertFound(
          await findings(withPort(silent)),
          'server-elsewhere',
          'error',
          /has the database open/,
          /hearth -- serve -c/,
        );
        const withoutClients = {
          options: {
            listeners: [
              {
                port: subject.port,
                type: 'http',
                bind_addresses: ['127.0.0.1'],
                resources: [{ names: ['federation'] }],
              },
            ],
          },
        };
        assertFound(await findings(withoutClients), 'listener-missing', 'error', /no listener/, /resources/);
      });

      it('reports a server that is unhealthy or not ready', async (context) => {
        const answers = {
          '/health': [200, 'OK'],
          '/health/ready': [503, 'The server is stopping'],
        } as Record<string, [number, string]>;
        const fake = await serveOnLoopback((request, response) => {
          const [status, text] = answers[request.url!]!;
          response.writeHead(status).end(text);
        });
        context.after(() => fake.close());
        const listeners = [
          {
            port: fake.port,
            type: 'http',
            bind_addresses: ['127.0.0.1'],
            resources: [{ names: ['client'] }],
          },
        ];
        assertFound(
          await findings({ options: { listeners } }),
          'server-not-ready',
          'warning',
          /The server is stopping/,
        );
        answers['/health'] = [503, 'Cannot write: the disk is full'];
        assertFound(
          await findings({ options: { listeners } }),
          'server-unhealthy',
          'error',
          /the disk is full/,
          /log/,
        );
      });

      it('reports that the server does not run, and checks names and certificates without it', async () => {
        await stop();
        const found = await findings();
        assertFound(
          found,
          'server-stopped',
          'warning',
          /No server answers/,
          /hearth -- serve -c .*homeserver\.yaml/,
        );
        assertFound(found, 'database-lease', 'ok', /No server has opened/);
        assertFound(found, 'certificate', 'ok', /matrix\.example\.org/);
        assert.deepEqual(
          problemsIn(found).map(({ name }) => name),
          ['server-stopped'],
        );
        await start();
      });
    });
  });
}
