import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { skippableClock } from '../../../test/support/clocks/skippable-clock.ts';
import { createLogger, createMetrics } from '../../kernel/observability/index.ts';
import { ModuleFiles } from './module-files.ts';
import { ModuleHeap } from './module-heap.ts';

describe('ModuleHeap', () => {
  it('logs which module keeps much memory, logs it again when the module keeps twice as much, and reports the memory in a metric', async () => {
    const files = new ModuleFiles();
    files.add('the leaking module', import.meta.url);
    const log: Record<string, unknown>[] = [];
    const destination = { write: (line: string) => void log.push(JSON.parse(line)) };
    const clock = skippableClock();
    const metrics = await createMetrics();
    const logger = createLogger({ level: 'warn', destination });
    const limits = { samplingInterval: 16 * 1024, firstWarning: 2 * 1024 * 1024 };
    const heap = new ModuleHeap({ clock, log: logger, metrics, files }, limits);
    const leaked: unknown[] = [];
    const leak = () => leaked.push(Array.from({ length: 60_000 }, (_, index) => ({ index })));
    heap.start();
    try {
      clock.advance(60_000);
      assert.equal(log.length, 0);
      for (let round = 0; round < 4; round++) leak();
      clock.advance(60_000);
      clock.advance(60_000);
      assert.deepEqual(
        log.map(({ msg, module }) => [msg, module]),
        [['A module uses much memory', 'the leaking module']],
      );
      for (let round = 0; round < 8; round++) leak();
      clock.advance(60_000);
      assert.equal(log.length, 2);
      assert.match(
        await metrics.render(),
        /^server_module_heap_bytes\{module="the leaking module"\} \d{7,}/m,
      );
      assert.equal(leaked.length, 12);
    } finally {
      heap.stop();
    }
  });
});

describe('ModuleFiles', () => {
  it('finds a module by its file, by another file in the same folder and by an error thrown there, and finds no module for files of Hearth', () => {
    const files = new ModuleFiles();
    files.add('one', 'file:///etc/hearth/modules/one.ts');
    files.add('package', 'file:///opt/hearth/node_modules/a/index.js');
    const root = new URL('../../../', import.meta.url);
    files.add('beside Hearth', new URL('module.ts', root).href);
    assert.equal(files.ownerOf('/etc/hearth/modules/one.ts'), 'one');
    assert.equal(files.ownerOf('file:///etc/hearth/modules/rules.ts'), 'one');
    assert.equal(files.ownerOf('file:///opt/hearth/node_modules/a/index.js'), 'package');
    assert.equal(files.ownerOf(new URL('module.ts', root).href), 'beside Hearth');
    for (const file of [new URL('other.ts', root).href, import.meta.filename, '']) {
      assert.equal(files.ownerOf(file), undefined, file);
    }
    const error = new Error('own');
    assert.equal(files.ownerInStack(error), undefined);
    error.stack = `Error: own\n    at check (file:///etc/hearth/modules/one.ts:5:7)`;
    assert.equal(files.ownerInStack(error), 'one');
    assert.equal(files.ownerInStack('text'), undefined);
  });
});
