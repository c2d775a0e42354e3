import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { type LogConfig, Logs } from './index.ts';

describe('Logs', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-logs-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const logFile = () => join(folder, 'all.log');
  const config = (more: Partial<LogConfig> = {}): LogConfig => ({
    level: 'info',
    levels: new Map(),
    outputs: [
      { to: { file: logFile() }, level: 'trace' },
      { to: { file: join(folder, 'bad.log') }, level: 'error' },
    ],
    remarks: [],
    ...more,
  });
  const messages = (name: string) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line).msg);
  const until = (name: string, message: string) =>
    eventually(message, () => messages(name).includes(message));

  it('writes the entries that reach the levels of their logger and of the file, and changes levels and files at run time', async () => {
    const logs = new Logs(config({ levels: new Map([['http', 'debug' as const]]) }));
    const [http, database] = [logs.named('http'), logs.named('database')];
    assert.equal(logs.named('http'), http);
    http.debug('seen');
    database.debug('not seen');
    logs.root.debug('not seen either');
    database.error('broken');
    await until('all.log', 'broken');
    await until('bad.log', 'broken');
    assert.deepEqual([messages('all.log'), messages('bad.log')], [['seen', 'broken'], ['broken']]);

    renameSync(logFile(), join(folder, 'old.log'));
    logs.configure(config({ level: 'warn', levels: new Map([['database', 'trace' as const]]) }));
    http.info('not seen');
    database.trace('written to the new file');
    await until('all.log', 'written to the new file');
    assert.deepEqual(messages('all.log'), ['written to the new file']);
    assert.deepEqual(messages('old.log'), ['seen', 'broken']);

    const nowhere = config({
      outputs: [
        { to: { file: logFile() }, level: 'trace' },
        { to: { file: join(folder, 'no', 'such.log') }, level: 'trace' },
      ],
    });
    assert.throws(() => logs.configure(nowhere), { code: 'ENOENT' });
    logs.root.warn('written as before');
    await until('all.log', 'written as before');
  });
});
