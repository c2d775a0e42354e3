import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { startTestServer, type TestServer, type TestUser } from '../../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../../test/support/users/register-admin.ts';
import { CommandFailure } from '../../failure.ts';
import { createProgram } from '../../program.ts';

/** What a command has printed, and how it has ended. */
export interface Outcome {
  readonly out: string;
  /** The message of the failure; empty when the command succeeds. */
  readonly failure: string;
  /** The progress that the terminal showed while the command worked. */
  readonly progress: string;
}

// Commands without -c read data/homeserver.yaml of the working directory, where a developer may run a server.
process.chdir(import.meta.dirname);

/**
 * Runs a command in this process, as at a terminal that shows progress.
 * @param home the folder with the stored logins
 */
export async function run(home: string, ...args: readonly string[]): Promise<Outcome> {
  let out = '';
  let progress = '';
  let failure = '';
  const program = createProgram({
    stdout: { write: (text) => (out += text) },
    stderr: { isTTY: true, write: (text) => (progress += text) },
    environment: { XDG_CONFIG_HOME: home },
  });
  await program.parseAsync([...args], { from: 'user' }).catch((error: unknown) => {
    if (!(error instanceof CommandFailure)) throw error;
    failure = error.message;
  });
  return { out, failure, progress };
}

/** A server with the users `admin`, who is logged in for commands, and `ann`. */
export interface AdministeredServer {
  readonly server: TestServer;
  /** The folder with the stored logins. */
  readonly home: string;
  readonly ann: TestUser;
  /** The access token of `admin`. */
  readonly adminToken: string;
  /** Writes a private file. @returns its path */
  file(name: string, text: string): string;
  /** Runs a command that must succeed. @returns its output */
  succeeds(...args: readonly string[]): Promise<string>;
  /** Runs a command that must fail. @returns the message */
  fails(...args: readonly string[]): Promise<string>;
  /** Runs a command with `--json` that must succeed. @returns the JSON */
  json(...args: readonly string[]): Promise<ReturnType<typeof JSON.parse>>;
  /** Sends a request as `ann`, which must succeed. @returns the body */
  request(method: string, path: string, body?: object): Promise<Readonly<Record<string, unknown>>>;
}

/** Starts the server before the tests of a describe, and stops it after them. */
export function administeredServer(database: 'sqlite' | 'postgres'): AdministeredServer {
  let server: TestServer;
  let home = '';
  let ann: TestUser;
  let adminToken = '';
  const file = (name: string, text: string) => {
    const path = join(home, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };

  const succeeds = async (...args: readonly string[]) => {
    const { out, failure } = await run(home, ...args);
    assert.equal(failure, '');
    return out;
  };
  const fails = async (...args: readonly string[]) => {
    const { out, failure } = await run(home, ...args);
    assert.equal(out, '');
    assert.notEqual(failure, '');
    return failure;
  };
  const json = async (...args: readonly string[]) => JSON.parse(await succeeds(...args, '--json'));
  const request = async (method: string, path: string, body?: object) => {
    const answer = await server.api(method, path, { token: ann.token, ...(body && { body }) });
    assert.equal(answer.status, 200, answer.raw);
    return answer.body;
  };

  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'hearth-administration-'));
    server = await startTestServer({ database });
    adminToken = (await registerAdmin(server)).token;
    ann = await server.register('ann');
    await succeeds(
      'login',
      '--server',
      server.baseUrl,
      '-u',
      'admin',
      '--password-file',
      file('password', 'password\n'),
    );
  });
  after(async () => {
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  });

  return {
    get server() {
      return server;
    },
    get home() {
      return home;
    },
    get ann() {
      return ann;
    },
    get adminToken() {
      return adminToken;
    },
    file,
    succeeds,
    fails,
    json,
    request,
  };
}
