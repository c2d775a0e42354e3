import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { Templates } from './index.ts';

let root = '';
let count = 0;
before(() => {
  root = mkdtempSync(join(tmpdir(), 'hearth-templates-'));
});
after(() => rmSync(root, { recursive: true, force: true }));

/** Creates a folder with these files. @returns its path */
function folder(files: Readonly<Record<string, string>>): string {
  const path = join(root, String(++count));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

const templatesOf = (...folders: Readonly<Record<string, string>>[]) =>
  new Templates({ folders: folders.map(folder), filters: { shout: (value) => `${value}!` } });

/** Renders one template of this text. */
const render = (text: string, values: Record<string, unknown> = {}, name = 'page.html') =>
  templatesOf({ [name]: text }).render(name, values);

describe('Templates', () => {
  it('takes each file from the first folder that has it', async () => {
    const templates = templatesOf(
      { 'a.html': 'own {% include "b.html" %}' },
      { 'a.html': 'built in', 'b.html': 'part {% include "c.html" %}', 'c.html': 'C' },
    );
    assert.equal(await templates.render('a.html', {}), 'own part C');
    assert.equal(await templates.render('c.html', {}), 'C');
  });

  it('lets a page of one folder extend the layout of another', async () => {
    const templates = templatesOf(
      { '_base.html': '<b>{% block body %}{% endblock %}</b>' },
      {
        '_base.html': '<i>{% block body %}{% endblock %}</i>',
        'a.html': '{% extends "_base.html" %}{% block body %}x{% endblock %}',
      },
    );
    assert.equal(await templates.render('a.html', {}), '<b>x</b>');
  });

  it('reads changed files after reload() and not before', async () => {
    const path = folder({ 'a.html': 'one' });
    const templates = new Templates({ folders: [path] });
    assert.equal(await templates.render('a.html', {}), 'one');
    writeFileSync(join(path, 'a.html'), 'two');
    assert.equal(await templates.render('a.html', {}), 'one');
    templates.reload();
    assert.equal(await templates.render('a.html', {}), 'two');
  });

  it('rejects with an error that names the file when a template is missing or faulty', async () => {
    await assert.rejects(templatesOf({}).render('a.html', {}), /template not found: a\.html/);
    await assert.rejects(render('{% if %}'), /page\.html/);
    await assert.rejects(render('\n\n{{ nothing.at.all() }}'), /page\.html\) \[Line \d, Column \d+\]/);
  });

  it('calls the given filters and escapes their results', async () => {
    assert.equal(await render('{{ "<a>" | shout }}'), '&lt;a&gt;!');
  });
});

describe('escaping by Templates', () => {
  it('escapes every value in HTML and XML, in all expressions', async () => {
    const values = {
      text: `<script>"'&`,
      list: ['<a>'],
      nested: { '<k>': '<v>' },
      object: { toString: () => '<o>' },
    };
    const escaped = '&lt;script&gt;&quot;&#39;&amp;';
    for (const name of ['page.html', 'page.xml']) {
      assert.equal(await render('{{ text }}', values, name), escaped);
    }
    assert.equal(await render('{{ "%s" % text }}{{ "%s" | format(text) }}', values), escaped + escaped);
    assert.equal(
      await render('{{ text ~ text }}{{ text[0:1] }}{{ text[0] }}', values),
      `${escaped}${escaped}&lt;&lt;`,
    );
    assert.equal(
      await render('{{ list }}{{ list | join }}{{ object }}', values),
      '&lt;a&gt;&lt;a&gt;&lt;o&gt;',
    );
    assert.equal(
      await render('{% for k, v in nested.items() %}{{ k }}{{ v }}{% endfor %}', values),
      '&lt;k&gt;&lt;v&gt;',
    );
    assert.equal(
      await render('{{ text.replace("s", "<").upper() }}', values),
      '&lt;&lt;CRIPT&gt;&quot;&#39;&amp;',
    );
    assert.equal(await render('{% set x = text %}{{ x or 1 }}{{ x if x }}', values), escaped + escaped);
    assert.equal(await render('{% macro m(a) %}{{ a }}{% endmacro %}{{ m(text) }}', values), escaped);
  });

  it('does not escape values marked as safe, nor values in templates that are not HTML or XML', async () => {
    assert.equal(await render('{{ x | safe }}', { x: '<b>' }), '<b>');
    assert.equal(await render('{{ x }}', { x: '<b> & "' }, 'mail.txt'), '<b> & "');
  });

  it('adds no markup to text or quoted attributes, whatever the value is (property)', async () => {
    const templates = templatesOf({ 'a.html': `<p title="{{ v }}" lang='{{ v }}'>{{ v }}</p>` });
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: fc.constantFrom(...'<>"\'&`=/\\{}% a\n') }), async (v) => {
        const html = await templates.render('a.html', { v });
        const escaped = /^<p title="([^"<>]*)" lang='([^'<>]*)'>([^<>]*)<\/p>$/s.exec(html);
        assert.ok(escaped, html);
        for (const text of escaped.slice(1)) assert.equal(unescaped(text), v);
      }),
      { numRuns: 300 },
    );
  });
});

const characters: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&#92;': '\\',
  '&amp;': '&',
};
const unescaped = (text: string) =>
  text.replace(/&(lt|gt|quot|#39|#92|amp);/g, (entity) => characters[entity]!);

describe('restrictions of Templates', () => {
  it('includes no file outside of the folders, whatever the name is', async () => {
    const secret = folder({ 'secret.html': 'SECRET' });
    const inside = folder({ 'a.html': '{% include name %}', '.hidden.html': 'HIDDEN', 'sub/b.html': 'B' });
    const templates = new Templates({ folders: [inside] });
    assert.equal(await templates.render('a.html', { name: 'sub/b.html' }), 'B');
    const names = [
      join(secret, 'secret.html'),
      `../${secret.split('/').at(-1)}/secret.html`,
      `./../${secret.split('/').at(-1)}/secret.html`,
      `sub/../../${secret.split('/').at(-1)}/secret.html`,
      `sub/..\\..\\secret.html`,
      '.hidden.html',
      './.hidden.html',
      'sub//b.html',
      '/etc/passwd',
      '%2e%2e/secret.html',
      'a.html\0',
      '',
      'sub',
    ];
    for (const name of names) {
      await assert.rejects(templates.render('a.html', { name }), /template not found|must be a string/, name);
      await assert.rejects(templates.render(name, {}), name);
    }
    const tricky = fc.array(
      fc.constantFrom('..', '.', '/', '\\', 'sub', 'b.html', 'secret.html', '%2e', '\0', '~'),
    );
    await fc.assert(
      fc.asyncProperty(tricky, async (parts) => {
        const text = await templates.render('a.html', { name: parts.join('') }).catch(() => '');
        assert.ok(text === '' || text === 'B', parts.join(''));
      }),
    );
  });

  it('denies access to constructors, prototypes and members of functions', async () => {
    const values = { f: () => 1, list: [1], object: { own: 1 }, date: new Date(0), map: new Map([['k', 1]]) };
    for (const expression of [
      'constructor',
      '__proto__',
      'toString',
      'hasOwnProperty',
      'f.constructor',
      'f["con" ~ "structor"]',
      'f.call',
      'range.constructor',
      'range["constructor"]',
      '"".constructor',
      '""[["constructor"]]',
      'list.constructor',
      'list.map',
      'list["__proto__"]',
      'object.constructor',
      'object.__proto__',
      'object.hasOwnProperty',
      'object.get("constructor", "")',
      'date.getTime',
      'map.get.constructor',
      'cycler.constructor',
      'cycler(1).next.constructor',
      '(1).constructor',
      'loop.constructor',
    ]) {
      assert.equal(await render(`[{{ ${expression} }}]`, values), '[]', expression);
    }
    for (const filter of ['constructor', 'valueOf', 'toString', '__defineGetter__']) {
      await assert.rejects(render(`{{ list | ${filter} }}`, values), /filter not found/, filter);
      await assert.rejects(render(`{{ list is ${filter} }}`, values), filter);
    }
    await assert.rejects(render(`{{ range.constructor("return process")() }}`, values));
    assert.equal(
      await render('{% for k in [1] %}[{{ loop.constructor }}{{ loop.index }}]{% endfor %}'),
      '[1]',
    );
  });

  it('denies access to the process and to nunjucks itself', async () => {
    for (const name of [
      'process',
      'global',
      'globalThis',
      'require',
      'module',
      'env',
      'context',
      'frame',
      'runtime',
    ]) {
      assert.equal(await render(`[{{ ${name} }}]`), '[]', name);
    }
  });
});

describe('Jinja2 syntax of Templates', () => {
  /** Template, expected result, values. */
  const cases: readonly (readonly [string, string, Record<string, unknown>?])[] = [
    ['{% include "part.html" without context %}', 'part '],
    ["{%- include 'part.html' with context %}", 'part X', { x: 'X' }],
    ['{% include "part-%s.html" % app ignore missing without context %}|', '|', { app: 'none' }],
    ['{% include "no.html" ignore missing %}|', '|'],
    ['{{ user_id.split(":")[0][1:] }}', 'alice', { user_id: '@alice:example.org' }],
    ['{{ "abcdef"[1:3] }}{{ "abc"[::-1] }}{{ "abc"[-1] }}{{ [1,2,3][1:] | join("-") }}', 'bccbac2-3'],
    ['{% if list %}some{% else %}none{% endif %}', 'none', { list: [] }],
    ['{% if not dict %}none{% endif %}{{ "a" if "" else "b" }}', 'noneb', { dict: {} }],
    ['{% if a or b or list %}some{% elif 0 or 1 %}one{% endif %}', 'one', { list: [] }],
    ['{{ list or "default" }}{{ "x" and "y" }}{{ "" and nothing.at() }}', 'defaulty', { list: [] }],
    [
      '{% if error is defined %}{{ error }}{% endif %}{% if no is defined %}x{% endif %}',
      'e',
      { error: 'e' },
    ],
    ['{{ "%.1f"|format(minutes / (60*1000)) }} {{ 7 % 3 }}', '2.5 1', { minutes: 150_000 }],
    ['{{ "historical" if m.old else "new" }}', 'new', { m: { old: false } }],
    ['{% if x == None %}none{% endif %}{{ 1 if True and not False else 2 }}', 'none1', { x: null }],
    ['{{ d.get("a", "-") }}{{ d.get("b", "-") }}{% for k in d %}{{ k }}{% endfor %}', '1-a', { d: { a: 1 } }],
    ['{{ name.split(" ")|last|lower|replace("é", "e") }}', 'rene', { name: 'X RENÉ' }],
    ['{{ email.partition("@")[0] }} {{ email.partition("#")|join(",") }}', 'a a@b,,', { email: 'a@b' }],
    ['{{ path.rpartition("/")[2] }} {{ path.rpartition("#")|join(",") }}', 'c ,,a/b/c', { path: 'a/b/c' }],
    ['{{ email.rsplit("@", 1)|join(" ") }} {{ email.rsplit("@")|length }}', 'a@b c 3', { email: 'a@b@c' }],
    ['{{ email.split("@")[0].strip() | trim }}', 'me', { email: ' me@example.org' }],
    [
      '{{ user["http://schemas/x"] }}{{ user.missing }}{{ user.missing.deeper }}',
      'c',
      { user: { 'http://schemas/x': 'c' } },
    ],
    [
      '{% for a in list %}{{ loop.index0 }}{{ list[loop.index0 - 1].n if loop.index0 else "" }}{% endfor %}',
      '01p',
      { list: [{ n: 'p' }, {}] },
    ],
    ['{# comment #}{% set y = 1 %}{{ y }}{%  block z %}z{%endblock%}', '1z'],
    ['{{ url | urlencode }}', 'https%3A%2F%2Fa%2F%3Fb%3Dc%26d', { url: 'https://a/?b=c&d' }],
  ];
  for (const [text, expected, values = {}] of cases) {
    it(`renders ${text}`, async () => {
      const templates = templatesOf({ 'page.html': text, 'part.html': 'part {{ x }}' });
      assert.equal(await templates.render('page.html', values), expected);
    });
  }

  it('formats texts like Python', async () => {
    const cases = {
      '%5d|%-5s|%05.1f': ['   42|ab   |003.5', [42, 'ab', 3.46]],
      '%x %X %%': ['ff FF %', [255, 255]],
      '%+d %s': ['+1 null', [1, null]],
    } as const;
    for (const [text, [expected, list]] of Object.entries(cases)) {
      assert.equal(await render('{{ text % list }}', { text, list }, 'a.txt'), expected);
    }
    assert.equal(await render('{{ "%(app)s on %(n)d" % v }}', { v: { app: 'Hearth', n: 1 } }), 'Hearth on 1');
    await assert.rejects(render('{{ "%s %s" % "one" }}'), /not enough values/);
  });
});
