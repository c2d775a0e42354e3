import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { initialize } from '../../src/commands/init.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { eventually } from '../clients/eventually.ts';
import { type ApiAnswer, type ApiRequest, callApi } from '../support/servers/api-call.ts';
import { builtHearth } from '../support/servers/built-hearth.ts';

export interface CommandResult {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a `hearth` command, and resolves when its process has ended. */
export async function hearth(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<CommandResult> {
  const main = await builtHearth();
  const child = spawn(process.execPath, [main, ...args], { stdio: 'pipe', env: { ...process.env, ...env } });
  child.stdin.end();
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => {
    out += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    err += String(chunk);
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, err };
}

/** A server in a separate process, with a configuration that `hearth init` has written. */
export interface ServerProcess {
  readonly process: ChildProcess;
  readonly url: string;
  /** Returns the standard output of the server until now. */
  readonly log: () => string;
  /** Returns the standard error of the server until now. */
  readonly errors: () => string;
  api(method: string, path: string, request?: ApiRequest): Promise<ApiAnswer>;
  /** Kills the process by SIGKILL, like a crash. */
  kill(): Promise<void>;
  /** Stops the server by SIGTERM. */
  stop(): Promise<void>;
}

/** Writes a configuration. @param more options that override the defaults of tests @returns the paths of its files */
export function configure(directory: string, more: object = {}): readonly string[] {
  const file = initialize({ serverName: 'example.org', directory }, systemRandomness);
  const override = join(directory, 'override.yaml');
  const options = {
    listeners: [
      {
        port: 0,
        type: 'http',
        bind_addresses: ['127.0.0.1'],
        resources: [{ names: ['client', 'federation'] }],
      },
    ],
    enable_registration: true,
    enable_registration_without_verification: true,
    bcrypt_rounds: 4,
    suppress_key_server_warning: true,
    rc_message: { per_second: 100_000, burst_count: 100_000 },
    rc_login: {
      address: { per_second: 1_000, burst_count: 1_000 },
      account: { per_second: 1_000, burst_count: 1_000 },
    },
    rc_registration: { per_second: 1_000, burst_count: 1_000 },
    media_store_path: join(directory, 'media'),
    caches: { sync_response_cache_duration: 0 },
    ...more,
  };
  writeFileSync(override, stringify(options));
  return [file, override];
}

/**
 * Starts the server of a configuration and waits until it serves.
 * @param variables added to the environment of the test
 */
export async function startProcess(
  paths: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  const flags = paths.flatMap((path) => ['-c', path]);
  const main = await builtHearth();
  const env = { ...process.env, ...variables };
  const child = spawn(process.execPath, [main, 'serve', ...flags], { stdio: 'pipe', env });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => {
    out += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    err += String(chunk);
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const url = await eventually(
    'the server',
    () => {
      if (child.exitCode !== null) throw new Error(`the server has ended: ${err}${out}`);
      return out.includes('Hearth serves') ? /http:\/\/127[\d.:]+/.exec(out)?.[0] : undefined;
    },
    60_000,
  );
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await ended;
  };
  return {
    process: child,
    url,
    log: () => out,
    errors: () => err,
    api: (method, path, request) => callApi(url, method, path, request),
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
