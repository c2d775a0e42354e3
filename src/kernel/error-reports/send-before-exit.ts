import { spawnSync } from 'node:child_process';
import type { SentryProject } from '../observability/index.ts';
import { headersFor } from './headers.ts';

/** Timeout of the last report, in milliseconds. */
const timeout = 3_000;

/** The program of the child process. It reads the request from standard input and sends it. */
const program = `
  const [url, headers, body] = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
  const { request } = require(url.startsWith('https:') ? 'node:https' : 'node:http');
  request(url, { method: 'POST', headers }, (response) => response.resume()).on('error', () => {}).end(body);
`;

/**
 * Sends the report of an error that ends this process. A child process sends it. This process is blocked until the
 * child has ended, so that no other code runs in a state that may be wrong. Uses a proxy only if environment variables
 * name one.
 */
export function sendBeforeExit(project: SentryProject, envelope: string): void {
  spawnSync(process.execPath, ['-e', program], {
    input: JSON.stringify([project.url.href, headersFor(project), envelope]),
    timeout,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...process.env, NODE_USE_ENV_PROXY: '1', NODE_OPTIONS: '' },
  });
}
