import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rsaCertificate } from '../../../src/sso/test/saml-idp.ts';
import { freePort } from '../../support/network/free-port.ts';
import { eventually } from '../eventually.ts';

/** Where Debian installs SimpleSAMLphp. */
const program = '/usr/share/simplesamlphp';

/** Which parts of its responses the identity provider signs and encrypts. */
export interface Responses {
  readonly signsResponse: boolean;
  readonly signsAssertion: boolean;
  readonly encrypts: boolean;
}

/** SimpleSAMLphp from Debian, as an identity provider with one user `ada` whose password is `lovelace`. */
export class SimpleSamlPhp {
  readonly url: string;
  readonly entityId: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'hearth-simplesamlphp-'));
  readonly #port: number;
  #process: ChildProcess | undefined;

  private constructor(port: number) {
    this.#port = port;
    // The homeserver is at 127.0.0.1, so that browsers treat the form that posts the SAML response as a cross-site request.
    this.url = `http://localhost:${port}`;
    this.entityId = `${this.url}/saml2/idp/metadata.php`;
  }

  static async start(): Promise<SimpleSamlPhp> {
    const idp = new SimpleSamlPhp(await freePort());
    idp.#configure();
    // Without opcache, changed files take effect at once.
    const settings = ['-d', 'display_errors=0', '-d', 'opcache.enable=0'];
    const args = [...settings, '-S', `127.0.0.1:${idp.#port}`, '-t', `${program}/www`];
    idp.#process = spawn('/usr/bin/php', args, {
      env: { PATH: '/usr/bin', SIMPLESAMLPHP_CONFIG_DIR: idp.#folder },
      stdio: 'ignore',
    });
    await eventually('SimpleSAMLphp', async () => {
      const answer = await fetch(idp.entityId).catch(() => undefined);
      return answer?.status === 200;
    });
    return idp;
  }

  /**
   * Registers a service by its metadata.
   * @param metadata the XML document of the service
   */
  trust(metadata: string, responses: Responses): void {
    this.#write('metadata/services.xml', metadata);
    this.#write(
      'metadata/saml20-idp-hosted.php',
      `<?php
$metadata['__DYNAMIC:1__'] = [
  'host' => '__DEFAULT__',
  'privatekey' => 'idp.key',
  'certificate' => 'idp.pem',
  'auth' => 'users',
  'validate.authnrequest' => true,
  'UIInfo' => ['DisplayName' => ['de' => 'Hochschule', 'en' => 'Example College']],
  'saml20.sign.response' => ${responses.signsResponse},
  'saml20.sign.assertion' => ${responses.signsAssertion},
  'assertion.encryption' => ${responses.encrypts},
];
`,
    );
  }

  /**
   * Returns the URL that begins a login at the identity provider, without a request of the service.
   * @param service entity id of the service
   * @param relayState URL to which the service leads the user after the login
   */
  unsolicitedUrl(service: string, relayState: string): string {
    const query = new URLSearchParams({ spentityid: service, RelayState: relayState });
    return `${this.url}/saml2/idp/SSOService.php?${query}`;
  }

  async stop(): Promise<void> {
    if (this.#process?.kill()) await once(this.#process, 'exit');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #write(name: string, content: string): void {
    writeFileSync(join(this.#folder, name), content);
  }

  #configure(): void {
    for (const name of ['metadata', 'cert', 'log', 'data', 'tmp', 'sessions']) {
      mkdirSync(join(this.#folder, name));
    }
    const { key, cert } = rsaCertificate('second');
    this.#write('cert/idp.key', key);
    this.#write('cert/idp.pem', cert);
    this.#write(
      'config.php',
      `<?php
$folder = '${this.#folder}/';
$config = [
  'baseurlpath' => '${this.url}/',
  'certdir' => $folder . 'cert/',
  'loggingdir' => $folder . 'log/',
  'datadir' => $folder . 'data/',
  'tempdir' => $folder . 'tmp/',
  'metadatadir' => $folder . 'metadata/',
  'secretsalt' => 'a salt of the tests',
  'auth.adminpassword' => 'a password of the tests',
  'timezone' => 'UTC',
  'logging.handler' => 'file',
  'enable.saml20-idp' => true,
  'module.enable' => ['exampleauth' => true, 'core' => true, 'saml' => true],
  'session.cookie.secure' => false,
  'session.cookie.samesite' => null,
  'session.phpsession.savepath' => $folder . 'sessions/',
  'store.type' => 'phpsession',
  'language.default' => 'en',
  'language.available' => ['en'],
  'authproc.idp' => [],
  'metadata.sources' => [['type' => 'flatfile'], ['type' => 'xml', 'file' => $folder . 'metadata/services.xml']],
];
`,
    );
    this.#write(
      'authsources.php',
      `<?php
$config = [
  'users' => [
    'exampleauth:UserPass',
    'ada:lovelace' => ['uid' => ['ada'], 'displayName' => ['Ada Lovelace'], 'mail' => ['ada@example.org']],
  ],
];
`,
    );
    const noProviders = '<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata"/>';
    this.trust(noProviders, { signsResponse: true, signsAssertion: true, encrypts: false });
  }
}
