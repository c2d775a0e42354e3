import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import sharp from 'sharp';
import { SamlIdp } from '../../src/sso/test/saml-idp.ts';
import { eventually } from '../clients/eventually.ts';
import { HearthProcess } from '../clients/hearth-process.ts';
import { installHearth } from '../support/servers/built-hearth.ts';

const root = join(import.meta.dirname, '..', '..');

describe('a server that was built and installed without its source files', () => {
  let folder: string;
  let server: HearthProcess;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-built-'));
    const settings = {
      enable_metrics: true,
      modules: [
        { module: join(folder, 'careless-module.ts'), config: { greeting: 'hello' } },
        { module: 'hearth-module-of-a-package', config: { path: '/_synapse/client/package' } },
      ],
      public_baseurl: 'https://hearth.test/',
      saml2_config: { sp_config: { metadata: { local: [join(folder, 'provider.xml')] } } },
    };
    cpSync(join(root, 'test/modules/careless-module.ts'), join(folder, 'careless-module.ts'));
    writeFileSync(join(folder, 'provider.xml'), new SamlIdp('https://idp.test').metadata);
    const program = await installHearth(join(folder, 'installed'));
    installPackage(join(folder, 'node_modules', 'hearth-module-of-a-package'));
    server = await HearthProcess.create(
      (_directory, port) => ({
        ...settings,
        listeners: [
          {
            port,
            type: 'http',
            bind_addresses: ['127.0.0.1'],
            resources: [{ names: ['client', 'media', 'metrics'] }],
          },
        ],
      }),
      program,
    );
    await server.start();
  });
  after(async () => {
    await server.remove();
    rmSync(folder, { recursive: true });
  });

  const call = async (method: string, path: string, token?: string, body?: unknown) => {
    const isJson = body === undefined || !(body instanceof Uint8Array);
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(!isJson && { 'content-type': 'image/png' }),
      },
      ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as Uint8Array<ArrayBuffer>) }),
    });
    assert.equal(response.status, 200, `${method} ${path}`);
    return response;
  };
  const readField = async (name: string, answer: Promise<Response>) => {
    const json = (await (await answer).json()) as Record<string, unknown>;
    return String(json[name]);
  };

  it('serves its page, its administration console, accounts, signed messages and thumbnails from the built program', async () => {
    assert.match(await (await call('GET', '/')).text(), /<html/);
    assert.match(await (await call('GET', '/_synapse/admin/ui/')).text(), /console\.js/);
    assert.ok((await (await call('GET', '/_synapse/admin/ui/console.js')).text()).length > 10_000);
    const clientApi = '/_matrix/client/v3';
    const registration = { username: 'anna', password: 'correct horse', auth: { type: 'm.login.dummy' } };
    const token = await readField(
      'access_token',
      call('POST', `${clientApi}/register`, undefined, registration),
    );
    const roomId = await readField('room_id', call('POST', `${clientApi}/createRoom`, token, {}));
    const path = `${clientApi}/rooms/${encodeURIComponent(roomId)}/send/m.room.message`;
    const messages = Array.from({ length: 20 }, (_, index) =>
      call('PUT', `${path}/${index}`, token, { msgtype: 'm.text', body: `message ${index}` }),
    );
    await Promise.all(messages);
    const image = await sharp({ create: { width: 400, height: 300, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    const upload = call('POST', '/_matrix/media/v3/upload', token, new Uint8Array(image));
    const id = (await readField('content_uri', upload)).slice('mxc://'.length);
    const thumbnail = await call(
      'GET',
      `/_matrix/client/v1/media/thumbnail/${id}?width=32&height=32&method=crop`,
      token,
    );
    const { width } = await sharp(Buffer.from(await thumbnail.arrayBuffer())).metadata();
    assert.equal(width, 32);
  });

  it('loads the libraries of metrics and SAML, which are CommonJS, when they are needed', async () => {
    assert.match(await (await call('GET', '/_synapse/metrics')).text(), /^process_cpu_seconds_total /m);
    assert.match(await (await call('GET', '/_synapse/client/saml2/metadata.xml')).text(), /EntityDescriptor/);
  });

  it('loads a module from a package in the node_modules of a folder above the built program', async () => {
    const answer = await call('GET', '/_synapse/client/package/somewhere');
    assert.deepEqual(await answer.json(), { from: 'a package', path: 'somewhere' });
  });

  it('continues to serve after uncaught errors of a module in TypeScript, logs the errors, and names the module in metrics', async () => {
    for (const mistake of ['timer', 'promise', 'text', 'emitter']) {
      const answer = call('GET', `/_synapse/client/careless/${mistake}`);
      assert.equal(await readField('greeting', answer), 'hello');
    }
    const name = join(folder, 'careless-module.ts');
    const failures =
      /^server_module_failures_total\{module="(.*)",callback="(.*)",reason="uncaught"\} (\d+)$/m;
    await eventually('the failures', async () => {
      const metrics = await (await call('GET', '/_synapse/metrics')).text();
      return failures.exec(metrics)?.[3] === '4' && failures.exec(metrics)?.[1] === name;
    });
    const log = readFileSync(join(server.directory, 'hearth.log'), 'utf8');
    for (const what of ['timer', 'promise', 'text', 'emitter'])
      assert.match(log, new RegExp(`careless ${what}`));
    assert.doesNotMatch(log, /the process exits/);
  });

  it('runs with a bounded young generation of the heap, and with the process id of the started command', () => {
    if (!process.execve) return;
    const parameters = readFileSync(`/proc/${server.pid}/cmdline`, 'utf8').split('\0');
    assert.ok(parameters.includes('--max-semi-space-size=16'), parameters.join(' '));
  });
});

/** Writes a package with a module. */
function installPackage(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const description = { name: 'hearth-module-of-a-package', type: 'module', exports: './index.js' };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(description));
  const code = `export default (config, api) => {
    api.registerWebResource(config.path, ({ path }) => ({ body: { from: 'a package', path } }));
  };`;
  writeFileSync(join(folder, 'index.js'), code);
}

describe('a server that was not built', () => {
  it('runs and serves from its source files', async () => {
    const server = await HearthProcess.create({}, join(root, 'src/main.ts'));
    try {
      await server.start();
      assert.match(await (await fetch(server.url)).text(), /<html/);
      assert.equal(await server.stop(), 0);
    } finally {
      await server.remove();
    }
  });
});

describe('builtProgram', () => {
  it('finds the built program as long as no source file is newer', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-built-'));
    for (const part of ['bin', 'dist', 'src/kernel']) mkdirSync(join(folder, part), { recursive: true });
    cpSync(join(root, 'bin/built-program.js'), join(folder, 'bin/built-program.js'));
    const files = ['package.json', 'src/kernel/clock.ts', 'dist/main.js'].map((file) => join(folder, file));
    for (const [index, file] of files.entries()) {
      writeFileSync(file, file.endsWith('.json') ? '{"type":"module"}' : '');
      utimesSync(file, 1000 + index, 1000 + index);
    }
    const { builtProgram } = await import(pathToFileURL(join(folder, 'bin/built-program.js')).href);
    assert.equal(builtProgram(), files[2]);
    utimesSync(files[1]!, 2000, 2000);
    assert.equal(builtProgram(), undefined);
    rmSync(join(folder, 'src'), { recursive: true });
    assert.equal(builtProgram(), files[2]);
    rmSync(files[2]!);
    assert.equal(builtProgram(), undefined);
    rmSync(folder, { recursive: true });
  });
});
