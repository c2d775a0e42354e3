import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { testConfiguration } from '../../test/support/servers/server.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { type Manhole, openManhole } from './manhole.ts';

describe('openManhole', () => {
  let manhole: Manhole | undefined;
  afterEach(() => manhole?.close());

  async function session(answers: readonly string[]): Promise<string> {
    const [host, port] = manhole!.addresses[0]!.split(':');
    const socket = connect(Number(port), host);
    const replies = [...answers];
    let text = '';
    for await (const chunk of socket) {
      text += String(chunk);
      if (/: $|> $/.test(text) && replies.length > 0) socket.write(`${replies.shift()}\n`);
    }
    return text;
  }

  it('opens no debugging console unless the configuration asks for one', async () => {
    manhole = await openManhole(testConfiguration(), {}, silentLogger);
    assert.equal(manhole, undefined);
  });

  it('runs JavaScript for users with the right password only [option: manhole, manhole_settings.username, manhole_settings.password]', async () => {
    const settings = { manhole: 0, manhole_settings: { username: 'me', password: 'open sesame' } };
    manhole = await openManhole(testConfiguration({ process: settings }), { answer: 42 }, silentLogger);
    assert.match(await session(['me', 'open sesame', 'answer + 1', '.exit']), /43/);
    const refused = await session(['me', 'please', 'answer + 1', '.exit']);
    assert.match(refused, /Refused/);
    assert.doesNotMatch(refused, /43/);
  });

  it('opens a debugging console on a listener of the type manhole [option: listeners[].type]', async () => {
    const listeners = [{ port: 0, type: 'manhole' as const, bind_addresses: ['127.0.0.1'] }];
    manhole = await openManhole(testConfiguration({ http: { listeners } }), {}, silentLogger);
    assert.match(manhole!.addresses[0]!, /^127\.0\.0\.1:\d+$/);
  });
});
