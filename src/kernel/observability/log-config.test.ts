import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { defaultLogConfig, logConfigOf } from './index.ts';

const parseLogConfig = (text: string) => logConfigOf(parse(text));

/** A logging configuration in the format of other homeservers. */
const otherServersFile = `
version: 1
formatters:
  precise:
    format: '%(asctime)s - %(name)s - %(levelname)s - %(message)s'
handlers:
  file:
    class: logging.handlers.TimedRotatingFileHandler
    formatter: precise
    filename: /var/log/homeserver.log
    when: midnight
    backupCount: 3
  buffer:
    class: synapse.logging.handlers.PeriodicallyFlushingMemoryHandler
    target: file
    capacity: 10
  console:
    class: logging.StreamHandler
    level: ERROR
    formatter: precise
loggers:
  synapse.storage.SQL:
    level: INFO
  synapse.storage.txn:
    level: DEBUG
  synapse.access.http.8008: { level: WARNING }
  twisted:
    level: ERROR
    handlers: [file]
    propagate: false
root:
  level: WARNING
  handlers: [buffer, console]
disable_existing_loggers: false
`;

describe('logConfigOf', () => {
  it('reads a log configuration that was written for other server software', () => {
    const { level, levels, outputs, remarks } = parseLogConfig(otherServersFile);
    assert.equal(level, 'warn');
    assert.deepEqual(Object.fromEntries(levels), { database: 'debug', http: 'warn' });
    assert.deepEqual(outputs, [
      { to: { file: '/var/log/homeserver.log' }, level: 'trace' },
      { to: 'stderr', level: 'error' },
    ]);
    assert.deepEqual(
      remarks.map((remark) => remark.split(':')[0]),
      ['loggers.twisted.handlers', 'loggers.twisted', 'handlers.file'],
    );
  });

  it('uses the default for each missing setting', () => {
    assert.deepEqual(parseLogConfig(''), defaultLogConfig);
    const { level, levels, outputs } = parseLogConfig('loggers: { http: { level: debug } }');
    assert.deepEqual([level, [...levels], outputs], ['info', [['http', 'debug']], defaultLogConfig.outputs]);
    const quiet = parseLogConfig(
      'handlers: { none: { class: logging.NullHandler } }\nroot: { handlers: [none] }',
    );
    assert.deepEqual(quiet.outputs, []);
    assert.equal(parseLogConfig('loggers: { synapse: { level: CRITICAL } }').level, 'fatal');
  });

  it('rejects an invalid log configuration with an error that names the place', () => {
    for (const [text, message] of [
      ['- a', /the file: a mapping is needed/],
      ['root: { level: LOUD }', /root\.level: "LOUD" is not a level/],
      ['loggers: { http: { level: 5 } }', /loggers\.http\.level: 5 is not a level/],
      ['root: { handlers: file }', /root\.handlers: a list of names/],
      ['root: { handlers: [file] }', /handlers\.file: there is no such handler/],
      ['handlers: { a: { target: a } }\nroot: { handlers: [a] }', /handlers\.a: its targets lead back to it/],
      [
        'handlers: { a: { class: x.SysLogHandler } }\nroot: { handlers: [a] }',
        /x\.SysLogHandler is not supported/,
      ],
    ] as const) {
      assert.throws(() => parseLogConfig(text), message, text);
    }
  });
});
