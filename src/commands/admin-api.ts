import { Client } from 'undici';
import { CommandFailure } from './failure.ts';

/** Calls the admin API of a running server. */
export interface AdminApi {
  /** @returns the JSON of the response @throws CommandFailure if the server refuses or cannot be reached */
  call(method: 'GET' | 'POST', path: string, body?: object): Promise<Record<string, unknown>>;
  /** @returns the response, whatever its status is @throws CommandFailure if the server cannot be reached */
  ask(
    method: 'GET' | 'POST',
    path: string,
  ): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>;
}

/** @param address a URL without a path, or `unix:` and the path of a socket */
export function adminApiAt(address: string): AdminApi {
  const client = address.startsWith('unix:')
    ? new Client('http://localhost', { connect: { socketPath: address.slice('unix:'.length) } })
    : new Client(new URL(address).origin);
  return {
    async ask(method, path) {
      const { statusCode, text } = await exchange(client, address, method, path);
      return { status: statusCode, body: parse(text) ?? {} };
    },
    async call(method, path, body) {
      const { statusCode, text } = await exchange(client, address, method, path, body);
      const answer = parse(text);
      if (statusCode === 200 && answer !== undefined) return answer;
      throw new CommandFailure(`${address} answered ${statusCode}: ${String(answer?.['error'] ?? text)}`);
    },
  };
}

async function exchange(
  client: Client,
  address: string,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
) {
  try {
    const response = await client.request({
      method,
      path,
      reset: true,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    return { statusCode: response.statusCode, text: await response.body.text() };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`${address} cannot be reached (${reason}). Is the server running?`);
  }
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
