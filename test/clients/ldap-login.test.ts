import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { Client } from 'ldapts';
import { freePort } from '../support/network/free-port.ts';
import { after, before, test } from './bounded-test.ts';
import { eventually } from './eventually.ts';
import { HearthProcess } from './hearth-process.ts';

const example = join(import.meta.dirname, '../../contrib/modules/ldap-login.ts');
const base = 'dc=example,dc=org';

/** The configuration of a directory. Only the user `cn=hearth` may read its entries; the homeserver binds as this user. */
const slapdConfig = (folder: string) => `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile ${folder}/slapd.pid
database mdb
suffix "${base}"
directory ${folder}/db
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="cn=hearth,${base}" read by * none
`;

const person = (uid: string, name: string, group: string) => `
dn: uid=${uid},ou=people,${base}
objectClass: inetOrgPerson
uid: ${uid}
cn: ${name}
sn: ${uid}
employeeType: ${group}
userPassword: password of ${uid}
`;

const entries = `
dn: ${base}
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: cn=hearth,${base}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: hearth
userPassword: secret

dn: ou=people,${base}
objectClass: organizationalUnit
ou: people
${person('alice', 'Alice Example', 'chat')}${person('bob', 'Bob Example', 'none')}`;

/** OpenLDAP's server from Debian. */
class Slapd {
  readonly url: string;
  readonly #folder = mkdtempSync(join(tmpdir(), 'hearth-slapd-'));
  #process: ChildProcess | undefined;

  private constructor(port: number) {
    this.url = `ldap://127.0.0.1:${port}`;
  }

  static async start(): Promise<Slapd> {
    const slapd = new Slapd(await freePort());
    const config = join(slapd.#folder, 'slapd.conf');
    const ldif = join(slapd.#folder, 'entries.ldif');
    mkdirSync(join(slapd.#folder, 'db'));
    writeFileSync(config, slapdConfig(slapd.#folder));
    writeFileSync(ldif, entries);
    execFileSync('/usr/sbin/slapadd', ['-f', config, '-l', ldif], { stdio: 'pipe' });
    const args = ['-h', slapd.url, '-f', config, '-d', '0'];
    slapd.#process = spawn('/usr/sbin/slapd', args, { stdio: 'ignore' });
    const client = new Client({ url: slapd.url });
    await eventually('the directory', () =>
      client.bind(`cn=hearth,${base}`, 'secret').then(
        () => true,
        () => false,
      ),
    );
    await client.unbind();
    return slapd;
  }

  async stop(): Promise<void> {
    if (this.#process?.exitCode === null && this.#process.kill()) await once(this.#process, 'exit');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

describe('the example module that logs users in with an LDAP directory', () => {
  let slapd: Slapd;
  let hearth: HearthProcess;
  before(async () => {
    slapd = await Slapd.start();
    const config = {
      url: slapd.url,
      base: `ou=people,${base}`,
      bind_dn: `cn=hearth,${base}`,
      bind_password: 'secret',
      filter: '(employeeType=chat)',
    };
    hearth = await HearthProcess.create({ modules: [{ module: example, config }] });
    await hearth.start();
  });
  after(async () => {
    await hearth.remove();
    await slapd.stop();
  });

  const clientApi = '/_matrix/client/v3';
  const call = async (method: string, path: string, body?: object, token?: string) => {
    const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) };
    const response = await fetch(hearth.url + path, { method, headers, body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const login = (user: string, password: string) =>
    call('POST', `${clientApi}/login`, {
      type: 'm.login.password',
      identifier: { type: 'm.id.user', user },
      password,
    });

  test('creates the account at the first login, with the name from the directory, and logs in to it at the second', async () => {
    const first = await login('alice', 'password of alice');
    assert.deepEqual([first.status, first.body['user_id']], [200, '@alice:hearth.test']);
    const token = String(first.body['access_token']);
    const profile = await call('GET', `${clientApi}/profile/@alice:hearth.test`, undefined, token);
    assert.equal(profile.body['displayname'], 'Alice Example');
    const second = await login('@alice:hearth.test', 'password of alice');
    assert.deepEqual([second.status, second.body['user_id']], [200, '@alice:hearth.test']);
  });

  test('the password in the directory is accepted in user-interactive authentication', async () => {
    const { body } = await login('alice', 'password of alice');
    const [token, device] = [String(body['access_token']), String(body['device_id'])];
    const path = `${clientApi}/devices/${device}`;
    const { body: challenge } = await call('DELETE', path, {}, token);
    const auth = {
      type: 'm.login.password',
      identifier: { type: 'm.id.user', user: 'alice' },
      password: 'password of alice',
      session: challenge['session'],
    };
    assert.equal((await call('DELETE', path, { auth }, token)).status, 200);
  });

  test('refuses wrong and empty passwords, unknown users, users that the filter excludes, and names with filter syntax', async () => {
    for (const [user, password] of [
      ['alice', 'password of bob'],
      ['alice', ''],
      ['mallory', 'password of alice'],
      ['bob', 'password of bob'],
      ['*', 'password of alice'],
      ['alice)(uid=*', 'password of alice'],
    ] as const) {
      const { status, body } = await login(user, password);
      assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN'], `${user}: ${password}`);
    }
  });

  test('accepts only the passwords of local accounts while the directory is down', async () => {
    const registration = { username: 'carol', password: 'correct horse', auth: { type: 'm.login.dummy' } };
    assert.equal((await call('POST', `${clientApi}/register`, registration)).status, 200);
    await slapd.stop();
    assert.equal((await login('carol', 'correct horse')).status, 200);
    assert.equal((await login('alice', 'password of alice')).status, 403);
  });
});
