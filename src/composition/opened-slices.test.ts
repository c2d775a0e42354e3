import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLogger } from '../kernel/observability/index.ts';
import { type OpenedSlice, OpenedSlices } from './opened-slices.ts';
import { Shutdown } from './shutdown.ts';

describe('OpenedSlices', () => {
  const read = {
    routes: (opened: OpenedSlices) => opened.routes,
    syncSources: (opened: OpenedSlices) => opened.syncSources,
    eduHandlers: (opened: OpenedSlices) => opened.eduHandlers,
    eventChecks: (opened: OpenedSlices) => opened.eventChecks,
    streams: (opened: OpenedSlices) => opened.streams,
  };

  for (const [part, readPart] of Object.entries(read)) {
    it(`refuses a slice with ${part} after the ${part} of all slices were read, because they would have no effect`, () => {
      const opened = new OpenedSlices(new Shutdown(silentLogger));
      const slice = { [part]: [] } as OpenedSlice;
      assert.equal(opened.add('in time', slice), slice);
      readPart(opened);
      assert.throws(() => opened.add('a late slice', slice), {
        message: `the ${part} of a late slice would have no effect: open the slice before the ${part} of all slices are read`,
      });
      opened.add('without it', { stop: () => undefined });
    });
  }
});
