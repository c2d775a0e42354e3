import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ModuleFiles } from './module-files.ts';

describe('ModuleFiles', () => {
  it('finds the module whose file is in the stack of an error, where the URL of the file has escaped characters', () => {
    const files = new ModuleFiles();
    const paths = ['/opt/my modules/one.ts', '/opt/c#/50%/two.ts', '/opt/größe?/three.ts'];
    for (const path of paths) files.add(path, pathToFileURL(path).href);
    const thrownAt = (place: string) =>
      Object.assign(new Error('broken'), { stack: `Error: broken\n    at run (${place}:3:7)` });
    for (const path of paths) {
      assert.equal(files.ownerInStack(thrownAt(pathToFileURL(path).href)), path);
      assert.equal(files.ownerInStack(thrownAt(path)), path);
    }
    for (const place of ['file:///opt/other/x.ts', 'file:///opt/%zz/x.ts', 'file:///a%2Fb.ts'])
      assert.equal(files.ownerInStack(thrownAt(place)), undefined);
  });
});
