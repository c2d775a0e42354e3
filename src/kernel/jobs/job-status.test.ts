import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobFailure, jobStatus } from './job-status.ts';

test('jobStatus returns the status of a job by its state, its attempts and whether it runs, unless its parameter isActive overrides the attempts', () => {
  /** Returns the status for each state. */
  const statuses = (running: boolean, attempts: number, isActive?: boolean) =>
    (['waiting', 'done', 'cancelled', 'failed'] as const).map((state) =>
      jobStatus({ state, running, attempts }, isActive),
    );
  const atEnd = ['complete', 'cancelled', 'failed'];
  assert.deepEqual(statuses(false, 0), ['scheduled', ...atEnd]);
  assert.deepEqual(statuses(true, 1), ['active', ...atEnd]);
  assert.deepEqual(statuses(false, 1), ['active', ...atEnd], 'waits for its second attempt');
  // The last parameter overrides what the attempts say.
  assert.deepEqual(statuses(false, 1, false), ['scheduled', ...atEnd]);
  assert.deepEqual(statuses(false, 0, true), ['active', ...atEnd]);
});

test('jobFailure returns the error of a failed job, and none for a job that will be tried again', () => {
  assert.equal(jobFailure({ state: 'failed', error: 'full' }), 'full');
  assert.equal(jobFailure({ state: 'failed', error: null }), 'unknown');
  assert.equal(jobFailure({ state: 'waiting', error: 'full' }), undefined);
});
