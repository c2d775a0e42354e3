import assert from 'node:assert/strict';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { openPages, templateFolders } from './pages.ts';

describe('openPages', () => {
  it('finds each template name in one built-in folder only', () => {
    const names = templateFolders.flatMap((folder) => globSync('**/*.*', { cwd: folder }));
    assert.deepEqual(names.length, new Set(names).size, names.join(' '));
    assert.ok(names.includes('welcome.html') && names.includes('error.html'));
  });

  it('prefers templates of the operator, and reads them again after reload()', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-own-templates-'));
    try {
      writeFileSync(join(folder, 'welcome.html'), 'own {{ server_name }}');
      const pages = openPages(folder);
      const values = { server_name: '<a>', open_registration: false };
      assert.equal((await pages.page('welcome.html', values)).body, 'own &lt;a&gt;');
      assert.match(String((await pages.page('error.html', {})).body), /This did not work/);
      rmSync(join(folder, 'welcome.html'));
      pages.reload();
      assert.match(String((await pages.page('welcome.html', values)).body), /The fire is lit/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
