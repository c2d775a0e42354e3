import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';

it('tests with real clients and with the reference server take their time limit from bounded-test.ts', () => {
  const folder = import.meta.dirname;
  const files = globSync('{clients,interop}/**/*.ts', { cwd: folder });
  const unbounded = files.filter((file) => {
    const [, names = ''] =
      /import (?:type )?\{([^}]*)\} from 'node:test'/.exec(readFileSync(join(folder, file), 'utf8')) ?? [];
    return /\b(after|afterEach|before|beforeEach|it|test)\b/.test(names);
  });
  assert.ok(files.length > 20);
  assert.deepEqual(unbounded, []);
});
