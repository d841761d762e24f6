'use strict';
(() => {
  // Names come from the file: they become text nodes and attributes, never markup.
  const data = JSON.parse(document.getElementById('data').textContent);
  const main = document.getElementById('report');
  const SVG = 'http://www.w3.org/2000/svg';
  const STEP = 50;

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value === true ? '' : value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  }
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  const count = (number) => Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
  function size(bytes) {
    let value = bytes;
    for (const unit of ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']) {
      if (value < 999.5 || unit === 'PiB') {
        const digits = unit === 'B' ? (Number.isInteger(value) ? 0 : 1) : value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
        return `${value.toFixed(digits)}\u00a0${unit}`;
      }
      value /= 1024;
    }
    return '';
  }
  const things = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;
  const percent = (part, all) => `${(all > 0 ? (part * 100) / all : 0).toFixed(1)}\u00a0%`;
  const ratio = (unpacked, stored) => (stored > 0 ? unpacked / stored : 1).toFixed(2);

  // ---- what a table is made of -------------------------------------------------------------------------------------

  const KINDS = { real: 'floating point', integer: 'integers', index: 'offsets of collections', text: 'text, bytes and bits', other: 'other', metadata: 'metadata' };
  const COLOURS = { real: '--real', integer: '--integer', index: '--index', text: '--text-kind', other: '--other', metadata: '--metadata' };
  function kindOf(type) {
    if (/^(Split)?Real|TLeaf(F|D|F16|D32)\b/.test(type)) return 'real';
    if (/Index|Switch/.test(type)) return 'index';
    if (/^(Split)?U?Int|TLeaf(I|L|S|B|G)\b/.test(type)) return 'integer';
    if (/^(Char|Byte|Bit)|TLeaf(C|O)\b/.test(type)) return 'text';
    return 'other';
  }

  function decode(raw) {
    const isTree = raw.format === '';
    const words = isTree
      ? { page: 'basket', pages: 'baskets', column: 'branch', columns: 'branches', element: 'entries' }
      : { page: 'page', pages: 'pages', column: 'column', columns: 'columns', element: 'elements' };
    const fields = raw.fields.map(([name, type, columns, pages, stored, unpacked, note]) => (
      { name, type: raw.texts[type], columns, pages, stored, unpacked, note: note || '' }));
    const columns = raw.columns.map((row, number) => {
      const [path, fieldType, type, bits, codec, pages, elements, stored, unpacked, smallest, median, largest] = row;
      const only = pages === 1 && stored > 0 ? stored : null;
      return {
        number, path, fieldType: raw.texts[fieldType], type: raw.texts[type], bits, codec: raw.texts[codec], pages, elements, stored, unpacked,
        smallest: smallest ?? only, median: median ?? only, largest: largest ?? only, kind: kindOf(raw.texts[type]),
      };
    });
    let [end, object] = [0, null];
    const runs = raw.map.map((row) => {
      const [gap, span, column, cluster, first, pages = 1, changes = 1, bytes = span, own = null] = row;
      const offset = (own === object ? end : 0) + gap;
      [object, end] = [own, offset + span];
      const { path, kind } = columns[column];
      return { offset, span, column: columns[column], name: path, kind, cluster, first, pages, changes, bytes, object: own };
    });
    runs.push(...raw.parts.map(([offset, bytes, what, own = null]) => (
      { offset, span: bytes, bytes, name: what, what, kind: 'metadata', object: own })));
    // Objects follow each other in the map, behind the file itself.
    const number = (run) => (run.object === null ? -1 : run.object);
    runs.sort((a, b) => number(a) - number(b) || a.offset - b.offset);
    let [base, size, last] = [0, 0, -1];
    for (const run of runs) {
      if (number(run) !== last) {
        base = last === -1 ? Math.max(size, (runs[0].object === null && raw.bytes.file_bytes) || 0) : size;
        last = number(run);
      }
      run.at = base + run.offset;
      size = Math.max(size, run.at + run.span);
    }
    const whole = last === -1 ? Math.max(size, raw.bytes.file_bytes || 0) : size;
    const sets = raw.sets.map(([name, entries, stored, metadata, reason]) => ({ name, entries, stored, metadata, note: reason ? `unreadable: ${reason}` : '' }));
    return { ...raw, isTree, words, fields, columns, sets, runs, whole };
  }

  // ---- summary and advice ------------------------------------------------------------------------------------------

  function summary(table) {
    const { bytes, words, clusters } = table;
    const fact = (name, value, more) => el('div', {}, el('dt', {}, name), el('dd', {}, value, more && el('small', {}, more)));
    const spread = (it, show) => (it.smallest === it.largest ? show(it.smallest) : `${show(it.smallest)} to ${show(it.largest)}`);
    const parts = [['header', bytes.header_bytes], ['footer', bytes.footer_bytes], ['page lists', bytes.page_list_bytes], ['record', bytes.record_bytes], ['anchor', bytes.other_metadata_bytes]];
    return el('dl', { class: 'facts' },
      fact('Entries', count(table.entries)),
      fact('Stored', size(bytes.stored_bytes), `${size(bytes.unpacked_bytes)} unpacked`),
      fact('Ratio', ratio(bytes.unpacked_bytes, bytes.stored_bytes), table.codecs.map((it) => it.name).join(', ')),
      fact('An entry', size(table.entry[0]), `${size(table.entry[1])} with metadata`),
      fact('Fields', count(table.fields.length), things(table.columns.length, words.column, words.columns)),
      fact(table.isTree ? 'Baskets' : 'Pages', count(table.pages), table.pages > 0 && `${size(bytes.stored_bytes / table.pages)} on average`),
      fact('Clusters', count(clusters.count), clusters.entries && `${spread(clusters.entries, count)} entries`),
      fact('Metadata', size(bytes.metadata_bytes), parts.filter(([, it]) => it > 0).map(([name, it]) => `${name} ${size(it)}`).join(', ')),
      bytes.file_bytes !== null && fact('File', size(bytes.file_bytes), bytes.free_bytes > 0 ? `${size(bytes.free_bytes)} free` : table.store === 'remote' && 'on a server'),
      table.query && fact('Query', size(table.query.stored_bytes), `${things(table.query.entries, 'entry', 'entries')}: ${things(table.query.pages, words.page, words.pages)}, ${things(table.query.requests, 'request', 'requests')}`),
    );
  }

  function advice(table) {
    if (table.advice.length === 0) return el('p', {}, 'None: sizes and codecs are good.');
    return el('ul', { class: 'advice' }, table.advice.map((it) => el('li', { class: it.level },
      el('span', { class: 'level' }, it.level),
      el('p', {}, el('strong', {}, it.what)),
      el('p', {}, it.why, ' ', el('span', { class: 'dim' }, `[${it.source}]`)),
      el('p', {}, el('code', {}, it.how)))));
  }

  // ---- treemap -----------------------------------------------------------------------------------------------------

  // Parts of a path: at dots, and at the colon of names such as AnalysisJetsAuxDyn:pt.
  const parts = (path) => path.split('.').flatMap((part) => {
    const at = part.search(/(?<=[^:]):(?=[^:])/);
    return at > 0 && !/[<(]/.test(part.slice(0, at)) ? [part.slice(0, at), part.slice(at + 1)] : [part];
  });

  function hierarchy(table) {
    const node = (name, path) => ({ name, path, stored: 0, unpacked: 0, columns: [], children: new Map(), parent: null });
    const root = node(table.name, '');
    for (const column of table.columns) {
      let at = root;
      const names = parts(column.path);
      names.forEach((name, depth) => {
        if (!at.children.has(name)) {
          const child = node(name, names.slice(0, depth + 1).join(' › '));
          child.parent = at;
          at.children.set(name, child);
        }
        at.stored += column.stored;
        at.unpacked += column.unpacked;
        at = at.children.get(name);
      });
      at.stored += column.stored;
      at.unpacked += column.unpacked;
      at.columns.push(column);
    }
    groupByPrefix(root, node);
    const settle = (it) => {
      const inner = [...it.children.values()];
      if (it.columns.length > 0 && it.columns.length + inner.length > 1) {
        inner.push(...it.columns.map((column) => Object.assign(node(column.type, `${it.path} (${column.type})`),
          { stored: column.stored, unpacked: column.unpacked, columns: [column], parent: it })));
        it.columns = [];
      }
      inner.forEach(settle);
      it.list = inner.filter((child) => child.stored > 0).sort((a, b) => b.stored - a.stored);
      // A chain of single parts is one part.
      if (it.parent && it.list.length === 1 && it.columns.length === 0) {
        const [only] = it.list;
        Object.assign(it, { name: only.list.length || /^_\d+$/.test(only.name) ? it.name : `${it.name}.${only.name}`, list: only.list, columns: only.columns, path: only.path });
        it.list.forEach((child) => { child.parent = it; });
      }
      // What most of its bytes are.
      it.kind = it.columns.length ? it.columns[0].kind : (it.list[0]?.kind ?? 'other');
    };
    settle(root);
    return root;
  }

  // Many fields are named by collection: Muon_pt, Muon_eta.
  function groupByPrefix(root, node) {
    if (root.children.size < 60) return;
    const groups = new Map();
    for (const child of root.children.values()) {
      const prefix = /^(.+?)_./.exec(child.name)?.[1];
      if (prefix) groups.set(prefix, [...(groups.get(prefix) || []), child]);
    }
    for (const [prefix, members] of groups) {
      if (members.length < 2 || root.children.has(`${prefix}_`)) continue;
      const group = node(`${prefix}_`, `${prefix}_…`);
      group.parent = root;
      for (const child of members) {
        root.children.delete(child.name);
        group.children.set(child.name, child);
        child.name = child.name.slice(prefix.length + 1);
        child.parent = group;
        group.stored += child.stored;
        group.unpacked += child.unpacked;
      }
      root.children.set(group.name, group);
    }
  }

  // Rectangles of about the same proportions (Bruls, Huizing, van Wijk: Squarified Treemaps).
  function squarify(items, x, y, width, height) {
    const placed = [];
    const total = items.reduce((sum, item) => sum + item.stored, 0);
    if (total <= 0 || width <= 0 || height <= 0) return placed;
    const scale = (width * height) / total;
    let [row, from] = [[], 0];
    const worst = (areas, side) => {
      const sum = areas.reduce((a, b) => a + b, 0);
      return Math.max((side * side * Math.max(...areas)) / (sum * sum), (sum * sum) / (side * side * Math.min(...areas)));
    };
    const flush = () => {
      const sum = row.reduce((a, b) => a + b, 0);
      const wide = width >= height;
      const thick = sum / (wide ? height : width);
      let at = wide ? y : x;
      row.forEach((area, index) => {
        const long = area / thick;
        placed.push(wide ? { item: items[from + index], x, y: at, width: thick, height: long } : { item: items[from + index], x: at, y, width: long, height: thick });
        at += long;
      });
      if (wide) { x += thick; width -= thick; } else { y += thick; height -= thick; }
      from += row.length;
      row = [];
    };
    for (const item of items) {
      const area = item.stored * scale;
      const side = Math.min(width, height);
      if (row.length > 0 && worst(row, side) < worst([...row, area], side)) flush();
      row.push(area);
    }
    flush();
    return placed;
  }

  function patterns() {
    const lines = {
      real: 'M-1,1 l2,-2 M0,8 l8,-8 M7,9 l2,-2', integer: 'M0,4 h8', index: 'M4,0 v8', text: 'M2,2 h1 M6,6 h1', other: '', metadata: 'M-1,7 l2,2 M0,0 l8,8 M7,-1 l2,2',
    };
    return svg('defs', {}, Object.entries(lines).map(([kind, path]) => svg('pattern', { id: `p-${kind}`, width: 8, height: 8, patternUnits: 'userSpaceOnUse' },
      svg('rect', { width: 8, height: 8, style: `fill: var(${COLOURS[kind]})` }),
      path && svg('path', { d: path, style: 'stroke: var(--ink); stroke-opacity: .16; stroke-width: 1; fill: none' }))));
  }

  function legend(kinds) {
    return el('ul', { class: 'legend' }, Object.entries(KINDS).filter(([kind]) => kinds.has(kind)).map(([kind, name]) => el('li', {},
      svg('svg', { viewBox: '0 0 22 14', 'aria-hidden': 'true' }, svg('rect', { width: 22, height: 14, class: kind })), name)));
  }

  const MOST_CELLS = 250;

  function treemap(table) {
    const root = hierarchy(table);
    const about = el('p', { class: 'about', 'aria-live': 'polite', id: 'tree-about' });
    const crumbs = el('nav', { class: 'crumbs', 'aria-label': 'Path in the map of fields' });
    const picture = svg('svg', { class: 'plot', id: 'treemap', role: 'group', 'aria-label': 'Map of fields by stored bytes' });
    let [current, cells, focused] = [root, [], 0];

    const tell = (node) => {
      const column = node.columns.length === 1 ? node.columns[0] : null;
      const inside = node.list.length ? `, ${things(node.list.length, 'part', 'parts')}; Enter opens it` : '';
      const more = column ? `; ${column.fieldType}, stored as ${column.type}, ${column.codec || 'no codec'}, ${things(column.pages, table.words.page, table.words.pages)}` : inside;
      return `${node.path || node.name}: ${size(node.stored)} stored (${percent(node.stored, root.stored)}), ${size(node.unpacked)} unpacked, ratio ${ratio(node.unpacked, node.stored)}${more}`;
    };
    const show = (node) => { about.textContent = tell(node); };

    function open(node, keepFocus) {
      current = node;
      focused = 0;
      draw();
      if (keepFocus && cells[0]) cells[0].focus();
      show(node);
    }
    function out(keepFocus) {
      if (!current.parent) return;
      const from = current;
      current = current.parent;
      draw();
      const index = cells.findIndex((cell) => cell.node === from);
      focus(Math.max(index, 0), keepFocus);
    }
    function focus(index, really) {
      if (!cells.length) return;
      cells[focused]?.setAttribute('tabindex', '-1');
      focused = Math.min(Math.max(index, 0), cells.length - 1);
      cells[focused].setAttribute('tabindex', '0');
      if (really) cells[focused].focus();
      show(cells[focused].node);
    }
    function key(event) {
      const moves = { ArrowRight: focused + 1, ArrowDown: focused + 1, ArrowLeft: focused - 1, ArrowUp: focused - 1, Home: 0, End: cells.length - 1 };
      if (event.key in moves) focus(moves[event.key], true);
      else if ((event.key === 'Enter' || event.key === ' ') && cells[focused]?.node.list.length) open(cells[focused].node, true);
      else if (event.key === 'Escape' || event.key === 'Backspace') out(true);
      else return;
      event.preventDefault();
    }
    function trail() {
      const way = [];
      for (let node = current; node; node = node.parent) way.unshift(node);
      crumbs.replaceChildren(el('ol', {}, way.map((node, index) => el('li', {},
        el('button', { type: 'button', 'aria-current': node === current && 'location', onclick: () => open(node, false) }, (index ? '› ' : '') + (node.name || 'all'))))));
    }
    const fits = (text, width, letter = 6.8) => {
      const most = Math.floor((width - 8) / letter);
      return text.length <= most ? text : most >= 4 ? `${text.slice(0, most - 1)}…` : '';
    };
    function draw() {
      const width = Math.max(picture.clientWidth || picture.parentNode?.clientWidth || 800, 200);
      const height = width < 560 ? 380 : 440;
      picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
      picture.style.height = `${height}px`;
      let list = current.list.length ? current.list : [current];
      if (list.length > MOST_CELLS) {
        const rest = list.slice(MOST_CELLS - 1);
        const sum = (key) => rest.reduce((all, node) => all + node[key], 0);
        const others = { name: `${count(rest.length)} smaller`, path: `${count(rest.length)} smaller ones`, stored: sum('stored'), unpacked: sum('unpacked'), columns: [], list: rest, parent: current, kind: 'other' };
        list = [...list.slice(0, MOST_CELLS - 1), others];
      }
      cells = squarify(list, 1, 1, width - 2, height - 2).map(({ item, x, y, width: w, height: h }) => {
        const isGroup = item.list.length > 0 && item !== current;
        const cell = svg('g', {
          class: `cell${isGroup ? ' group' : ''}`, role: isGroup ? 'button' : 'img', tabindex: '-1', 'aria-label': tell(item),
          onpointerenter: () => show(item), onclick: () => isGroup && open(item, true),
        });
        const place = (a, b, c, d) => ({ x: a.toFixed(1), y: b.toFixed(1), width: Math.max(c, 0).toFixed(1), height: Math.max(d, 0).toFixed(1) });
        const label = fits(item.name, w, isGroup ? 7.8 : 6.8);
        if (isGroup && item.list.length <= 4000 && w > 12 && h > 12) {
          cell.append(svg('rect', { ...place(x, y, w, h), class: 'frame' }));
          const head = label && h > 40 ? 18 : 2;
          for (const inner of squarify(item.list.slice(0, 120), x + 2, y + head, w - 4, h - head - 2)) {
            cell.append(svg('rect', { ...place(inner.x, inner.y, inner.width, inner.height), class: `inner ${inner.item.kind}` }));
            const name = inner.height > 16 ? fits(inner.item.name, inner.width) : '';
            if (name) cell.append(svg('text', { x: (inner.x + 4).toFixed(1), y: (inner.y + 13).toFixed(1) }, name));
          }
          if (head > 2) cell.append(svg('text', { class: 'head', x: (x + 5).toFixed(1), y: (y + 13).toFixed(1) }, label));
        } else {
          cell.append(svg('rect', { ...place(x, y, w, h), class: item.kind }));
          if (label && h > 16) cell.append(svg('text', { x: (x + 4).toFixed(1), y: (y + 14).toFixed(1) }, label));
          if (label && h > 34 && w > 60) cell.append(svg('text', { x: (x + 4).toFixed(1), y: (y + 29).toFixed(1) }, size(item.stored)));
        }
        cell.append(svg('rect', { ...place(x + 1, y + 1, w - 2, h - 2), class: 'hit' }));
        cell.addEventListener('focus', () => focus(cells.indexOf(cell), false));
        cell.node = item;
        return cell;
      });
      picture.replaceChildren(patterns(), ...cells);
      focused = 0;
      cells[0]?.setAttribute('tabindex', '0');
      trail();
    }
    picture.addEventListener('keydown', key);
    const figure = el('figure', { onkeydown: (event) => event.key === 'Escape' && !event.defaultPrevented && out(false) },
      el('div', { class: 'tools' }, crumbs), picture, about, legend(new Set(table.columns.map((it) => it.kind))));
    return { node: figure, draw: () => { draw(); show(current); } };
  }

  // ---- byte map ----------------------------------------------------------------------------------------------------

  function byteMap(table) {
    const { runs, whole, words } = table;
    const canvas = el('canvas', { class: 'plot', id: 'bytemap', tabindex: '0', role: 'application', 'aria-roledescription': 'byte map', 'aria-describedby': 'byte-about',
      'aria-label': `Map of ${words.pages} by their place in the file. Left and right arrows go from ${words.page} to ${words.page}, plus and minus zoom, Page Up and Page Down move, 0 shows all.` });
    const overview = el('canvas', { class: 'plot', 'aria-hidden': 'true' });
    const about = el('p', { class: 'about', id: 'byte-about', 'aria-live': 'polite' });
    const [TALL, LOW] = [110, 18];
    let [from, to, chosen, width] = [0, Math.max(whole, 1), -1, 800];

    const place = (run) => `${run.object === null ? '' : `${table.objects[run.object]}, `}byte ${count(run.offset)}`;
    const tell = (run) => {
      if (run.what) return `${run.what}: ${size(run.bytes)} at ${place(run)}`;
      const page = run.pages === 1 ? `${words.page} ${count(run.first)}` : things(run.pages, words.page, words.pages);
      const what = run.changes === 1 ? `${run.column.path}, ${words.column} ${run.column.number} (${run.column.type})` : `${count(run.changes)} parts of ${words.columns} from ${run.column.path} on`;
      return `${what}, cluster ${count(run.cluster)}, ${page}: ${size(run.bytes)} at ${place(run)}`;
    };
    const view = () => `Bytes ${count(from)} to ${count(to)} of ${count(whole)} (${size(to - from)})`;
    const show = () => { about.textContent = chosen >= 0 ? tell(runs[chosen]) : `${view()}. ${runs.length ? 'Blank parts are other objects or free.' : `No ${words.pages}.`}`; };
    const find = (byte) => {
      let [low, high] = [0, runs.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (runs[middle].at + runs[middle].span <= byte) low = middle + 1; else high = middle;
      }
      return low;
    };
    function tiles(context, style) {
      const made = {};
      for (const [kind, name] of Object.entries(COLOURS)) {
        const tile = document.createElement('canvas');
        [tile.width, tile.height] = [8, 8];
        const pen = tile.getContext('2d');
        pen.fillStyle = style.getPropertyValue(name);
        pen.fillRect(0, 0, 8, 8);
        pen.globalAlpha = 0.2;
        pen.strokeStyle = style.getPropertyValue('--ink');
        pen.beginPath();
        if (kind === 'real') { pen.moveTo(0, 8); pen.lineTo(8, 0); }
        if (kind === 'integer') { pen.moveTo(0, 4.5); pen.lineTo(8, 4.5); }
        if (kind === 'index') { pen.moveTo(4.5, 0); pen.lineTo(4.5, 8); }
        if (kind === 'metadata') { pen.moveTo(0, 0); pen.lineTo(8, 8); }
        if (kind === 'text') { pen.rect(2, 2, 1, 1); pen.rect(6, 6, 1, 1); }
        pen.stroke();
        made[kind] = context.createPattern(tile, 'repeat');
      }
      return made;
    }
    function paint(target, height, low, high, detail) {
      const dots = window.devicePixelRatio || 1;
      target.width = Math.round(width * dots);
      target.height = Math.round(height * dots);
      target.style.height = `${height}px`;
      const context = target.getContext('2d');
      context.scale(dots, dots);
      const style = getComputedStyle(document.documentElement);
      const fills = tiles(context, style);
      const ink = style.getPropertyValue('--ink');
      const back = style.getPropertyValue('--back');
      const scale = width / (high - low);
      let [last, start] = [-1, null];
      const label = (end) => {
        if (!detail || start === null || end - start.x < 44) return;
        const room = Math.floor((end - Math.max(start.x, 0) - 8) / 6.6);
        const text = start.run.name.length <= room ? start.run.name : `${start.run.name.slice(0, Math.max(room - 1, 0))}…`;
        context.fillStyle = ink;
        if (room >= 4) context.fillText(text, Math.max(start.x, 0) + 4, 24);
      };
      context.font = '12px system-ui, sans-serif';
      for (let index = find(low); index < runs.length && runs[index].at < high; index++) {
        const run = runs[index];
        const [x, end] = [(run.at - low) * scale, (run.at + run.span - low) * scale];
        const isNew = start === null || start.run.name !== run.name || start.run.cluster !== run.cluster;
        if (isNew) { label(x); start = { x, run }; }
        // Many pages are within one point: the first one is drawn.
        if (end <= last + 0.5) continue;
        context.fillStyle = fills[run.kind];
        context.fillRect(Math.max(x, last), detail ? 34 : 0, Math.max(end - Math.max(x, last), 0.6), height);
        if (detail && (end - x) > 6) {
          context.fillStyle = isNew ? ink : back;
          context.fillRect(x, isNew ? 28 : 34, 1, height);
        }
        last = end;
      }
      if (start) label(Math.min((runs[Math.min(find(high), runs.length) - 1]?.at + runs[Math.min(find(high), runs.length) - 1]?.span - low) * scale || width, width));
      return { context, scale, ink, style };
    }
    function draw() {
      width = Math.max(canvas.parentNode.clientWidth - 2, 100);
      const { context, scale, ink, style } = paint(canvas, TALL, from, to, true);
      if (chosen >= 0) {
        const run = runs[chosen];
        context.strokeStyle = ink;
        context.lineWidth = 2;
        context.strokeRect((run.at - from) * scale, 33, Math.max(run.span * scale, 3), TALL - 35);
      }
      context.fillStyle = style.getPropertyValue('--dim');
      context.fillText(size(from), 4, 11);
      const end = size(to);
      context.fillText(end, width - context.measureText(end).width - 4, 11);
      const whole2 = paint(overview, LOW, 0, Math.max(whole, 1), false);
      whole2.context.strokeStyle = style.getPropertyValue('--accent');
      whole2.context.lineWidth = 3;
      whole2.context.strokeRect(from * whole2.scale + 1, 1, Math.max((to - from) * whole2.scale - 2, 3), LOW - 2);
      show();
    }
    function look(low, high) {
      const span = Math.min(Math.max(high - low, 64), Math.max(whole, 1));
      from = Math.min(Math.max((low + high) / 2 - span / 2, 0), Math.max(whole, 1) - span);
      to = from + span;
      [from, to] = [Math.floor(from), Math.ceil(to)];
      draw();
    }
    function zoom(factor, at) {
      const middle = at ?? (chosen >= 0 ? runs[chosen].at + runs[chosen].span / 2 : (from + to) / 2);
      const part = (middle - from) / (to - from);
      const inside = part >= 0 && part <= 1 ? part : 0.5;
      const span = (to - from) / factor;
      look(middle - span * inside, middle + span * (1 - inside));
    }
    const move = (part) => { chosen = -1; look(from + (to - from) * part, to + (to - from) * part); };
    const all = () => { chosen = -1; look(0, whole); };
    function choose(index) {
      if (!runs.length) return;
      chosen = Math.min(Math.max(index, 0), runs.length - 1);
      const run = runs[chosen];
      const span = to - from;
      if (run.at < from || run.at + run.span > to) look(run.at + run.span / 2 - span / 2, run.at + run.span / 2 + span / 2);
      else draw();
    }
    // To where single pages are wide enough to be seen.
    const closest = () => {
      if (chosen < 0) chosen = Math.min(find((from + to) / 2), runs.length - 1);
      if (chosen >= 0) look(runs[chosen].at - runs[chosen].span * 3, runs[chosen].at + runs[chosen].span * 4);
    };
    canvas.addEventListener('keydown', (event) => {
      const actions = {
        ArrowRight: () => choose(chosen < 0 ? find(from) : chosen + 1), ArrowLeft: () => choose(chosen < 0 ? find(to) - 1 : chosen - 1),
        Home: () => choose(0), End: () => choose(runs.length - 1), '+': () => zoom(2), '=': () => zoom(2), '-': () => zoom(0.5),
        ArrowUp: () => zoom(2), ArrowDown: () => zoom(0.5), PageUp: () => move(-0.8), PageDown: () => move(0.8), 0: all, Escape: all, Enter: closest,
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
      actions[event.key]();
      event.preventDefault();
    });
    const byte = (event) => from + ((event.clientX - canvas.getBoundingClientRect().left) / width) * (to - from);
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.4 : 1 / 1.4, byte(event));
    }, { passive: false });
    canvas.addEventListener('pointermove', (event) => {
      const at = byte(event);
      const index = find(at);
      const run = runs[index];
      const hit = run && run.at <= at ? index : -1;
      if (hit !== chosen) { chosen = hit; draw(); }
    });
    canvas.addEventListener('pointerleave', () => { if (document.activeElement !== canvas) { chosen = -1; draw(); } });
    canvas.addEventListener('blur', () => { chosen = -1; draw(); });
    const button = (text, name, action) => el('button', { type: 'button', 'aria-label': name, title: name, onclick: action }, text);
    const figure = el('figure', {}, canvas, overview, el('div', { class: 'tools' },
      button('+', 'Zoom in', () => zoom(2)), button('−', 'Zoom out', () => zoom(0.5)), button('←', 'Move left', () => move(-0.5)),
      button('→', 'Move right', () => move(0.5)), button('All', 'Show all', all), button(words.page === 'page' ? 'Pages' : 'Baskets', `Zoom to single ${words.pages}`, closest)), about,
      legend(new Set(runs.map((run) => run.kind))));
    return { node: figure, draw };
  }

  // ---- tables and histograms ---------------------------------------------------------------------------------------

  function histogram(caption, rows, head) {
    const most = Math.max(...rows.map(([, value]) => value), 1);
    return el('table', { class: 'bars' }, el('caption', {}, caption),
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, head[0]), el('th', { scope: 'col' }, head[1]), el('td', {}))),
      el('tbody', {}, rows.map(([name, value]) => {
        const bar = el('div', { class: 'fill' });
        bar.style.width = `${(value * 100) / most}%`;
        return el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, count(value)), el('td', { class: 'bar', 'aria-hidden': 'true' }, value > 0 && bar));
      })));
  }

  function clusterBins(table) {
    const bins = new Map();
    for (const [, , stored, , clusters] of table.clusters.list) {
      const power = Math.max(Math.floor(Math.log2(Math.max(stored / clusters, 1))), 0);
      bins.set(power, (bins.get(power) || 0) + clusters);
    }
    const powers = [...bins.keys()];
    const rows = [];
    for (let power = Math.min(...powers); power <= Math.max(...powers); power++) rows.push([size(2 ** power), bins.get(power) || 0]);
    return rows;
  }

  // Whether a filter shows a text that contains it, or that its wildcards match: those of `--fields`. Null for no filter.
  function matcher(wanted) {
    if (!wanted) return null;
    const special = { '*': '.*', '?': '.', '{': '(?:', '}': ')', ',': '|' };
    const escaped = (it) => (it.length > 1 ? it.replaceAll('\\', '\\\\').replace('[!', '[^') : special[it] ?? `\\${it}`);
    const pattern = wanted.replace(/\[!?[^\]]+\]|[^\w\s]/g, escaped);
    let whole = null;
    try {
      whole = new RegExp(`^(?:${pattern})$`, 's');
    } catch {
      // It is incomplete.
    }
    return (text) => text.includes(wanted) || whole?.test(text);
  }

  // `columns`: head, key or function that gives the value, function that shows it; numbers are sorted from the largest on.
  function grid(id, name, rows, columns, sorted) {
    let [order, up, shown, isWanted] = [sorted, false, STEP, null];
    const body = el('tbody');
    const status = el('span', { class: 'dim', role: 'status' });
    const more = el('button', { type: 'button', class: 'more', onclick: () => { shown += STEP * 4; list(); } }, 'Show more');
    const isNumber = (column) => rows.length > 0 && typeof column.value(rows[0]) === 'number';
    const heads = columns.map((column, index) => el('th', { scope: 'col', class: isNumber(column) ? 'number' : '' },
      el('button', { type: 'button', onclick: () => sort(index) }, column.head, el('span', { 'aria-hidden': 'true' }))));
    const texts = rows.map((row) => columns.map((column) => column.value(row)).filter((value) => typeof value === 'string').map((text) => text.toLowerCase()));
    const filter = el('input', { type: 'search', id: `${id}-filter`, autocomplete: 'off', spellcheck: 'false', oninput: () => { isWanted = matcher(filter.value.trim().toLowerCase()); shown = STEP; list(); } });
    function sort(index) {
      up = index === order ? !up : !isNumber(columns[index]);
      order = index;
      list();
    }
    function list() {
      heads.forEach((head, index) => {
        const direction = index === order ? (up ? 'ascending' : 'descending') : null;
        if (direction) head.setAttribute('aria-sort', direction); else head.removeAttribute('aria-sort');
        head.querySelector('span').textContent = direction ? (up ? ' ▲' : ' ▼') : '';
      });
      const found = rows.map((row, index) => index).filter((index) => !isWanted || texts[index].some(isWanted));
      const { value } = columns[order];
      const keys = new Map(found.map((index) => [index, value(rows[index])]));
      found.sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        const by = typeof x === 'number' ? x - y : x < y ? -1 : Number(x > y);
        return (up ? by : -by) || a - b;
      });
      body.replaceChildren(...found.slice(0, shown).map((index) => el('tr', {}, columns.map((column, number) => {
        const content = column.show ? column.show(column.value(rows[index]), rows[index]) : column.value(rows[index]);
        return el(number === 0 ? 'th' : 'td', { scope: number === 0 && 'row', class: isNumber(column) ? 'number' : column.wraps && 'wrap' }, String(content));
      }))));
      status.textContent = found.length > shown ? `${count(shown)} of ${count(found.length)}` : things(found.length, 'row', 'rows');
      more.hidden = found.length <= shown;
    }
    list();
    return el('section', { id },
      el('h2', {}, name),
      rows.length > 8 && el('div', { class: 'tools' }, el('label', {}, 'Filter', filter), status),
      el('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': name }, el('table', {}, el('thead', {}, el('tr', {}, heads)), body)),
      el('div', { class: 'tools' }, more));
  }

  function tables(table) {
    const { words } = table;
    const all = table.bytes.stored_bytes;
    const by = (head, key, show) => ({ head, value: (row) => row[key], show, wraps: ['name', 'path', 'type', 'fieldType', 'field', 'note'].includes(key) && head !== 'Stored as' });
    const bytes = (head, key) => by(head, key, (value) => (value === null || value < 0 ? '' : size(value)));
    const amount = (head, key) => by(head, key, count);
    const pages = table.isTree ? 'Baskets' : 'Pages';
    const share = { head: 'Share', value: (row) => row.stored, show: (value) => percent(value, all) };
    const packed = { head: 'Ratio', value: (row) => (row.stored > 0 ? row.unpacked / row.stored : 1), show: (value) => value.toFixed(2) };
    const groups = (list) => list.map((it) => ({ name: it.name, columns: it.columns, pages: it.pages, stored: it.stored_bytes, unpacked: it.unpacked_bytes }));
    const ofGroups = (head) => [by(head, 'name'), amount(table.isTree ? 'Branches' : 'Columns', 'columns'), amount(pages, 'pages'), bytes('Unpacked', 'unpacked'), bytes('Stored', 'stored'), packed, share];
    const orMissing = (head, key) => ({ head, value: (row) => row[key] ?? -1, show: (value) => (value < 0 ? '' : size(value)) });
    const hasNotes = table.fields.some((field) => field.note);
    const clusters = table.clusters.list.map(([first, entries, stored, unpacked, number], index) => ({ index, first, entries, stored, unpacked, number }));
    const isCombined = clusters.some((it) => it.number > 1);
    return [
      grid('fields', 'Fields', table.fields, [by('Field', 'name'), by('Type', 'type'), amount(table.isTree ? 'Branches' : 'Columns', 'columns'), amount(pages, 'pages'), bytes('Unpacked', 'unpacked'), bytes('Stored', 'stored'), packed, share, ...(hasNotes ? [by('Note', 'note')] : [])], 5),
      grid('columns', table.isTree ? 'Branches' : 'Columns', table.columns, [by('Field', 'path'), by('Type', 'fieldType'), by('Stored as', 'type'), by('Bits', 'bits', (it) => it || ''), by('Codec', 'codec'), amount(pages, 'pages'), amount(table.isTree ? 'Entries' : 'Elements', 'elements'), bytes('Unpacked', 'unpacked'), bytes('Stored', 'stored'), packed, orMissing(`Smallest ${words.page}`, 'smallest'), orMissing('Median', 'median'), orMissing('Largest', 'largest')], 8),
      grid('types', table.isTree ? 'Types of leaves' : 'Column types', groups(table.types), ofGroups('Type'), 4),
      grid('codecs', 'Codecs', groups(table.codecs), ofGroups('Codec'), 4),
      grid('clusters', 'Clusters', clusters, [amount('First entry', 'first'), amount('Entries', 'entries'), bytes('Stored', 'stored'), bytes('Unpacked', 'unpacked'), packed, ...(isCombined ? [amount('Clusters', 'number')] : [])], 2),
      table.sets.length > 0 && grid('sets', 'Attribute sets', table.sets, [by('Name', 'name'), amount('Entries', 'entries'), bytes('Stored', 'stored'), bytes('Metadata', 'metadata'), ...(table.sets.some((set) => set.note) ? [by('Note', 'note')] : [])], 2),
      table.query && grid('query', 'Query', table.query.columns, [by('Field', 'field'), by('Stored as', 'type'), amount(pages, 'pages'), bytes('Unpacked', 'unpacked_bytes'), bytes('Stored', 'stored_bytes'), amount('Requests', 'requests')], 4),
    ];
  }

  // ---- the page ----------------------------------------------------------------------------------------------------

  let redraw = [];

  function show(number) {
    const table = decode(data.tables[number]);
    const tree = treemap(table);
    const map = byteMap(table);
    const picker = data.tables.length > 1 && el('p', { class: 'picker' }, el('label', {}, 'Object',
      el('select', { id: 'picker', onchange: (event) => { show(Number(event.target.value)); document.getElementById('picker').focus(); } },
        data.tables.map((it, index) => el('option', { value: index, selected: index === number }, `${it.file}:${it.name}`)))));
    const about = [table.class, table.description !== table.name && table.description, table.format && `format ${table.format}`, table.writer && `written by ${table.writer}`].filter(Boolean).join(', ');
    const hasClusters = table.clusters.list.length > 0;
    main.replaceChildren(
      el('header', {}, el('h1', {}, table.name), el('p', { class: 'dim path' }, table.file, el('br'), about), picker || ''),
      summary(table),
      el('section', { id: 'advice' }, el('h2', {}, 'Advice'), advice(table)),
      el('section', { id: 'tree' }, el('h2', {}, 'Where the bytes are'),
        el('p', { class: 'dim' }, 'Areas are stored bytes. Click or press Enter to open a group, Escape to leave it; arrow keys move.'), tree.node),
      el('section', { id: 'bytes' }, el('h2', {}, 'Byte map'),
        el('p', { class: 'dim' }, `The ${table.words.pages} by their place. Wheel, buttons, and the keys + and − zoom; arrow keys go from ${table.words.page} to ${table.words.page}, Enter zooms to one.`), map.node),
      el('section', { id: 'sizes' }, el('h2', {}, 'Sizes'), el('div', { class: 'columns2' },
        histogram(`${table.isTree ? 'Baskets' : 'Pages'} by stored size`, table.sizes.map(([bytes, pages]) => [size(bytes), pages]), ['From', table.isTree ? 'Baskets' : 'Pages']),
        hasClusters && histogram('Clusters by stored size', clusterBins(table), ['From', 'Clusters']))),
      ...tables(table).filter(Boolean));
    document.title = `${table.name} – ${table.file}`;
    redraw = [tree.draw, map.draw];
    redraw.forEach((draw) => draw());
  }

  show(0);
  let [waiting, before] = [0, document.documentElement.clientWidth];
  window.addEventListener('resize', () => {
    if (document.documentElement.clientWidth === before) return;
    before = document.documentElement.clientWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => redraw.forEach((draw) => draw()));
  });
  for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
    matchMedia(query).addEventListener('change', () => redraw.forEach((draw) => draw()));
  }
})();
